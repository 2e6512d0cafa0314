import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Tests what a process is and how it begins (section PR of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ProcessTests {
    @Test func `PR-1 the members are Foundation's, and do what they say`() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "cat; echo $NAME; pwd; echo wrong >&2"]
        process.environment = ["NAME": "value", "PATH": "/bin:/usr/bin"]
        process.currentDirectoryURL = URL(fileURLWithPath: "/usr", isDirectory: true)
        process.qualityOfService = .utility
        let (input, output, error) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = error
        #expect(!process.isRunning)
        #expect(process.processIdentifier == 0)
        try start(process)
        #expect(process.processIdentifier > 0)
        try input.fileHandleForWriting.write(contentsOf: Data("given\n".utf8))
        try input.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(text == "given\nvalue\n/usr\n")
        let wrong = String(decoding: error.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(wrong == "wrong\n")
        waitForEnd(process)
        #expect(process.terminationStatus == 0)
        #expect(process.terminationReason == .exit)
        #expect(process.currentDirectoryURL?.path == "/usr")
        #expect(process.qualityOfService == .utility)
    }

    @Test func `PR-1 the class function starts a program, with a handler`() throws {
        let ended = Latch()
        let process = try onLoopThread { _ in
            Result { try Process.run(URL(fileURLWithPath: "/bin/true"), arguments: []) { _ in ended.open() } }
        }.get()
        try ended.wait()
        #expect(process.terminationStatus == 0)
    }

    @Test func `PR-1 standard streams that are nil or the null device are /dev/null`() {
        let listed = output(of: shell("readlink /proc/self/fd/0 /proc/self/fd/2"))
        #expect(listed.hasPrefix("/dev/null\n"))
        let process = shell("readlink /proc/self/fd/0 /proc/self/fd/2")
        process.standardInput = FileHandle.nullDevice
        process.standardError = nil
        #expect(output(of: process) == "/dev/null\n/dev/null\n")
    }

    @Test func `PR-2 a process runs once, and later settings do not reach the child`() throws {
        let (process, input) = reader()
        try start(process)
        process.executableURL = URL(fileURLWithPath: "/bin/false")
        process.arguments = ["other"]
        #expect { try start(process) } throws: {
            ($0 as NSError).domain == NSCocoaErrorDomain
                && ($0 as NSError).code == CocoaError.Code.executableLoad.rawValue
        }
        try input.close()
        waitForEnd(process)
        #expect(process.terminationStatus == 0)
        #expect(throws: (any Error).self) { try start(process) }
    }

    @Test func `PR-3 a process that cannot be started throws with the path, and posts nothing`() throws {
        let told = EventLog()
        let process = Process()
        process.terminationHandler = { _ in told.note("handler") }
        #expect(throws: (any Error).self, "without a program") { try start(process) }
        for (path, code) in [
            ("/no/such/program", CocoaError.Code.fileReadNoSuchFile), ("/etc/passwd", .fileReadNoPermission),
            ("/usr", .fileNoSuchFile),
        ] {
            process.executableURL = URL(fileURLWithPath: path)
            #expect {
                try start(process)
            } throws: { error in
                let error = error as NSError
                return error.domain == NSCocoaErrorDomain && error.code == code.rawValue
                    && error.userInfo[NSFilePathErrorKey] as? String == path
                    && error.localizedDescription.contains(path)
            }
            #expect(!process.isRunning)
        }
        process.executableURL = URL(fileURLWithPath: "/bin/true")
        process.currentDirectoryURL = URL(fileURLWithPath: "/no/such/folder")
        #expect {
            try start(process)
        } throws: {
            ($0 as NSError).userInfo[NSFilePathErrorKey] as? String == "/no/such/folder"
        }
        // After a failure it can be run: then the handler is called, once.
        process.currentDirectoryURL = nil
        try start(process)
        try waitFor("the handler") { told.entries.isEmpty ? nil : () }
        #expect(told.entries == ["handler"])
    }

    @Test func `PR-4 the status is the exit code, or the signal's number with its reason`() {
        for code: Int32 in [0, 1, 42, 255] {
            let process = launch(shell("exit \(code)"))
            waitForEnd(process)
            #expect(process.terminationStatus == code)
            #expect(process.terminationReason == .exit)
        }
        for number in [SIGTERM, SIGKILL, SIGUSR1] {
            let process = launch(shell("kill -\(number) $$"))
            waitForEnd(process)
            #expect(process.terminationStatus == number)
            #expect(process.terminationReason == .uncaughtSignal)
        }
    }

    @Test func `PR-4 to read the status while the child runs traps`() async {
        await #expect(processExitsWith: .failure) {
            let (process, input) = reader()
            try process.run()
            _ = process.terminationStatus
            try input.close()
        }
        await #expect(processExitsWith: .failure) { _ = Process().terminationReason }
    }

    @Test func `PR-16 the child has its own group, clean signals and no further descriptor`() throws {
        // Ignored and blocked in this process; both would be the child's without further ado.
        let ignored = signal(SIGUSR2, SIG_IGN)
        defer { signal(SIGUSR2, ignored) }
        let (numbers, status, group, identifier) = try onLoopThread { _ -> (String, String, String, Int32) in
            var blocked = sigset_t()
            sigemptyset(&blocked)
            sigaddset(&blocked, SIGTERM)
            pthread_sigmask(SIG_BLOCK, &blocked, nil)
            // Inherited by every child that does not close it.
            let open = dup(1)
            defer { close(open) }
            let process = shell("exec cut -d' ' -f 5 /proc/self/stat")
            let group = output(of: process)
            return (
                output(of: shell("ls /proc/self/fd")), output(of: shell("grep ^Sig /proc/self/status")),
                group,
                process.processIdentifier
            )
        }
        // The last one is that by which `ls` reads the folder.
        #expect(numbers == "0\n1\n2\n3\n")
        #expect(status.contains("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"))
        #expect(group == "\(identifier)\n")
    }

    @Test func `PR-17 run closes the child's ends of pipes, and no file handle`() throws {
        let (input, output) = (Pipe(), Pipe())
        let path = NSTemporaryDirectory() + "rondo-process-\(getpid())"
        try Data().write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = try #require(FileHandle(forWritingAtPath: path))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "cat; echo wrong >&2"]
        process.standardInput = input
        process.standardOutput = output
        process.standardError = file
        try start(process)
        #expect(input.fileHandleForReading.fileDescriptor == -1)
        #expect(output.fileHandleForWriting.fileDescriptor == -1)
        #expect(fcntl(file.fileDescriptor, F_GETFD) != -1)
        try input.fileHandleForWriting.close()
        // No other process has the writing end: this comes to its end.
        #expect(output.fileHandleForReading.readDataToEndOfFile().isEmpty)
        waitForEnd(process)
        try file.write(contentsOf: Data("right\n".utf8))
        try file.close()
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "wrong\nright\n")
    }

    @Test func `PR-18 terminate and interrupt reach the child alone, and do nothing after its end`() throws {
        for (send, number) in [(Process.terminate, SIGTERM), (Process.interrupt, SIGINT)] {
            let (process, input) = reader()
            try start(process)
            send(process)()
            waitForEnd(process)
            #expect(process.terminationStatus == number)
            send(process)()
            #expect(!process.suspend())
            try input.close()
        }
    }

    @Test func `PR-18 suspend and resume balance`() throws {
        let (process, input) = reader()
        try start(process)
        let stopped = {
            try waitFor("the child to be stopped") { stateOf(process.processIdentifier) == "T" ? () : nil }
        }
        #expect(process.suspend())
        #expect(process.suspend())
        try stopped()
        #expect(process.resume())
        #expect(stateOf(process.processIdentifier) == "T")
        #expect(process.resume())
        try waitFor("the child to go on") { stateOf(process.processIdentifier) == "S" ? () : nil }
        try input.close()
        waitForEnd(process)
        #expect(process.terminationStatus == 0)
    }

    @Test func `PR-18 PR-21 a child that two threads resume at once goes on`() throws {
        let (process, input) = reader()
        try start(process)
        let number = process.processIdentifier
        for _ in 0..<300 {
            #expect(process.suspend())
            #expect(process.suspend())
            try waitFor("the child to be stopped") { stateOf(number) == "T" ? () : nil }
            DispatchQueue.concurrentPerform(iterations: 2) { _ in _ = process.resume() }
            try waitFor("the child to go on") { stateOf(number) == "T" ? nil : () }
        }
        try input.close()
        waitForEnd(process)
        #expect(process.terminationStatus == 0)
    }

    @Test func `PR-18 a resume without a suspend sends nothing, and counts for a later one`() throws {
        let process = shell("trap 'echo continued' CONT; echo ready; read line; exit 0")
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try start(process)
        let lines = output.fileHandleForReading
        #expect(lines.availableData == Data("ready\n".utf8))
        #expect(process.resume())
        #expect(process.suspend())
        #expect(process.suspend())
        try waitFor("the child to be stopped") { stateOf(process.processIdentifier) == "T" ? () : nil }
        // The first of the two was taken back before.
        #expect(process.resume())
        #expect(lines.availableData == Data("continued\n".utf8))
        try input.fileHandleForWriting.close()
        waitForEnd(process)
        #expect(!process.suspend())
        #expect(process.resume())
        #expect(lines.readDataToEndOfFile().isEmpty)
    }

    @Test func `PR-1 an empty path of the directory means this process's`() throws {
        let process = shell("pwd")
        let named: any OldDirectory = process
        named.currentDirectoryPath = ""
        #expect(process.currentDirectoryURL == nil)
        let own = FileManager.default.currentDirectoryPath
        #expect(output(of: process) == own + "\n")
        process.currentDirectoryURL = nil
        #expect(process.currentDirectoryURL?.path == own)
    }

    @Test func `PR-21 Process can be subclassed, and used from any thread`() throws {
        final class Counted: Process, @unchecked Sendable {
            let runs = Mutex(0)

            override func run() throws {
                runs.withLock { $0 += 1 }
                try super.run()
            }
        }
        let process = Counted()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exit 7"]
        try onLoopThread { _ in launchHere(process) }
        try onLoopThread { _ in process.waitUntilExit() }
        #expect(process.terminationStatus == 7)
        #expect(process.runs.withLock { $0 } == 1)
    }
}

/// (Foundation's keeps a thread and its descriptors.)
@Suite(.timeLimit(.minutes(5)), .serialized) struct ForeignProcessTests {
    @Test func `PR-22 Foundation's own process keeps working beside it`() throws {
        let ended = Latch()
        let process = Foundation.Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exit 5"]
        process.terminationHandler = { _ in ended.open() }
        try process.run()
        let own = launch(shell("exit 6"))
        try ended.wait()
        waitForEnd(own)
        #expect(process.terminationStatus == 5)
        #expect(own.terminationStatus == 6)
    }
}

/// The old name of the directory, by which the compiler warns of nothing.
private protocol OldDirectory: AnyObject {
    var currentDirectoryPath: String { get set }
}

extension Process: OldDirectory {}
