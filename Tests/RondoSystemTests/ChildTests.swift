import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Tests how a child begins, and what it has (section CH of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ChildTests {
    /// Runs a script of the shell, and returns what it writes.
    private func text(
        _ script: String, _ change: (inout Child.Configuration) -> Void = { _ in }
    ) throws -> String {
        var configuration = Child.Configuration("/bin/sh", ["-c", script])
        configuration.standardInput = .none
        configuration.standardOutput = .collected(limit: 1 << 20)
        change(&configuration)
        let child = try Child.spawn(configuration)
        try onLoopThread { loop in
            child.onCompletion = { _, _ in loop.stop() }
            child.schedule(in: loop, forMode: .default)
            loop.runUntilStopped()
        }
        return String(decoding: child.collectedOutput, as: UTF8.self)
    }

    @Test func `CH-1 a child that cannot be started throws the failed step, with the path`() {
        var missing = Child.Configuration("/no/such/program")
        for (program, code) in [
            ("/no/such/program", ENOENT), ("no-such-program", ENOENT), ("/etc/passwd", EACCES),
            ("/usr", EACCES),
        ] {
            missing.program = program
            #expect {
                try Child.spawn(missing)
            } throws: {
                let error = $0 as? ChildError
                return error?.code == .program && error?.systemCode == code && error?.path == program
                    && error?.description.contains(program) ?? false
            }
        }
        #expect {
            try Child.spawn("true", workingDirectory: "/no/such/folder")
        } throws: {
            let error = $0 as? ChildError
            return error?.code == .workingDirectory && error?.systemCode == ENOENT
                && error?.path == "/no/such/folder"
        }
        // Longer than the kernel takes.
        #expect {
            try Child.spawn("true", [String(repeating: "x", count: 1 << 20)])
        } throws: { ($0 as? ChildError)?.systemCode == E2BIG }
        #expect { try Child.spawn("true", ["a\0b"]) } throws: { ($0 as? ChildError)?.code == .configuration }
    }

    @Test func `CH-8 in the child no signal is blocked, and none ignored that was not given`() throws {
        let ignored = signal(SIGUSR2, SIG_IGN)
        defer { signal(SIGUSR2, ignored) }
        let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        #expect(try text(script) == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")
        let given = try text(script) { $0.ignoredSignals = [SIGHUP, SIGPIPE] }
        #expect(given == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n")
    }

    @Test func `CH-9 the child has its three descriptors and those that it is given, by the given numbers`()
        throws
    {
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data("through 7".utf8))
        try pipe.fileHandleForWriting.close()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        // Inherited, if nothing is done about it.
        let open = dup(1)
        defer { close(open) }
        #expect(try text("ls /proc/self/fd") == "0\n1\n2\n3\n")
        let listed = try text("ls /proc/$$/fd; cat <&7") { $0.descriptors = [7: descriptor, 5: 2] }
        #expect(listed == "0\n1\n2\n5\n7\nthrough 7")
        // Numbers that take each other's place.
        let other = Pipe()
        let (reading, writing) = (
            other.fileHandleForReading.fileDescriptor, other.fileHandleForWriting.fileDescriptor
        )
        let crossed = try text("") {
            ($0.program, $0.arguments) = (
                "python3",
                ["-c", "import os; os.write(\(reading), b'crossed'); print(os.read(\(writing), 7).decode())"]
            )
            $0.descriptors = [reading: writing, writing: reading]
        }
        #expect(crossed == "crossed\n")
        #expect {
            try Child.spawn(
                {
                    var configuration = Child.Configuration("true")
                    configuration.descriptors = [9: 4_711]
                    return configuration
                }())
        } throws: { ($0 as? ChildError)?.systemCode == EBADF }
    }

    /// In a process of its own: the limit of the machine may be more than the kernel has room for.
    @Test func `CH-9 the child may have the last descriptor that the limit allows`() async {
        await #expect(processExitsWith: .success) {
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var limit = rlimit()
            getrlimit(resource, &limit)
            limit.rlim_cur = 1_024
            precondition(setrlimit(resource, &limit) == 0, "there are few descriptors")
            let last: Int32 = 1_023
            let pipe = Pipe()
            let (reading, writing) = (
                pipe.fileHandleForReading.fileDescriptor, pipe.fileHandleForWriting.fileDescriptor
            )
            // Two take each other's place, and one is given twice.
            let crossed = try ChildTests().text("") {
                ($0.program, $0.arguments) = (
                    "python3",
                    [
                        "-c",
                        "import os; os.write(\(last), b'through'); print(os.read(\(writing), 7).decode())",
                    ]
                )
                $0.descriptors = [last: writing, reading: writing, writing: reading]
            }
            withExtendedLifetime(pipe) {}
            precondition(crossed == "through\n", "the child has written \(crossed)")
        }
    }

    @Test func `CH-9 a descriptor beyond every limit is refused`() {
        var configuration = Child.Configuration("true")
        configuration.descriptors = [.max: 2]
        #expect {
            try Child.spawn(configuration)
        } throws: { ($0 as? ChildError)?.systemCode == EBADF }
    }

    @Test func `CH-9 descriptors may change places in a circle`() throws {
        let pipes = (0..<3).map { _ in Pipe() }
        defer { withExtendedLifetime(pipes) {} }
        let numbers = pipes.map { $0.fileHandleForReading.fileDescriptor }
        for turn in 0..<3 {
            let given = (0..<3).map { numbers[($0 + turn) % 3] }
            let read = try text("") {
                ($0.program, $0.arguments) = (
                    "python3",
                    [
                        "-c",
                        "import os, sys; print(*[os.fstat(int(n)).st_ino for n in sys.argv[1:]])",
                    ] + numbers.map { "\($0)" }
                )
                $0.descriptors = Dictionary(uniqueKeysWithValues: zip(numbers, given))
            }
            let expected = given.map { number in
                var status = stat()
                fstat(number, &status)
                return "\(status.st_ino)"
            }
            #expect(read == expected.joined(separator: " ") + "\n")
        }
    }

    @Test(arguments: [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO])
    func `CH-9 a child's standard descriptor cannot be given by number as well`(number: Int32) {
        #expect {
            try Child.spawn(
                {
                    var configuration = Child.Configuration("true")
                    configuration.descriptors = [number: 2]
                    return configuration
                }())
        } throws: { ($0 as? ChildError)?.code == .configuration }
    }

    @Test func `CH-10 no child spawned meanwhile holds another one's pipe`() throws {
        // Each child reads to the end of its input, which comes only if no other child has the writing end.
        let threads = (0..<4).map { _ in
            LoopThread { loop -> Int in
                var ended = 0
                for _ in 0..<25 {
                    guard
                        let child = try? Child.spawn(
                            "cat", standardInput: .stream, standardOutput: .collected(limit: 10))
                    else { continue }
                    child.onCompletion = { _, _ in loop.stop() }
                    child.schedule(in: loop, forMode: .default)
                    child.input?.open()
                    child.input?.close()
                    if loop.runUntilStopped() == .stopped, child.currentStatus == .exited(0) { ended += 1 }
                }
                return ended
            }
        }
        for thread in threads { #expect(try thread.value() == 25) }
    }

    @Test func `CH-18 the child is in its parent's group, leads its own, or a session`() throws {
        // Group and session of the shell itself: `cut` replaces it.
        func words(_ change: (inout Child.Configuration) -> Void = { _ in }) throws -> [Substring] {
            let text = try text("exec cut -d' ' -f 1,5,6 /proc/self/stat", change)
            let words = text.split(whereSeparator: \.isWhitespace)
            try #require(words.count == 3, "\(text)")
            return words
        }
        let (group, session) = (getpgrp(), getsid(0))
        let parents = try words()
        #expect(parents[1] == "\(group)" && parents[2] == "\(session)")
        let own = try words { $0.group = .own }
        #expect(own[1] == own[0] && own[2] == "\(session)")
        let leader = try words { $0.group = .session }
        #expect(leader[1] == leader[0] && leader[2] == leader[0])
    }

    @Test func `CH-19 a child that dies with its parent does so, by whichever thread it was spawned`() throws
    {
        let peer = try TestServerProcess([BuiltFiles.path("RondoChildProbe"), "parent"])
        let number = try #require(Int32(try peer.line(after: "child ")))
        #expect(isKnown(number))
        // The thread that has asked for it has ended by then; the process ends now.
        peer.tell("end")
        try waitFor("the kernel to end the child") { [nil, "Z", "X"].contains(stateOf(number)) ? () : nil }
    }

    @Test func `CH-20 a name is looked for in PATH of the child's environment, else of the parent's`() throws
    {
        let folder = NSTemporaryDirectory() + "rondo-child-path-\(getpid())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "#!/bin/sh\necho own\n".write(toFile: folder + "/rondo-tool", atomically: true, encoding: .utf8)
        chmod(folder + "/rondo-tool", 0o755)
        let found = try text("") { configuration in
            configuration.program = "rondo-tool"
            configuration.environment = .changed(["PATH": "/no/such:" + folder])
        }
        #expect(found == "own\n")
        #expect(throws: ChildError.self) { try Child.spawn("rondo-tool") }
        #expect(throws: ChildError.self) { try Child.spawn("true", environment: .exactly(["PATH": folder])) }
        #expect(try text("") { ($0.program, $0.arguments) = ("echo", ["parent's"]) } == "parent's\n")
        // A name with a slash is a path from the child's directory.
        let relative = try text("") { ($0.program, $0.workingDirectory) = ("./rondo-tool", folder) }
        #expect(relative == "own\n")
    }

    @Test func `CH-21 directory, environment and arguments are those of the call`() throws {
        let script = "pwd; echo $RONDO_A $RONDO_B $HOME; echo $1"
        setenv("RONDO_A", "parent's", 1)
        defer { unsetenv("RONDO_A") }
        let changed = try text(script) {
            $0.workingDirectory = "/usr"
            $0.environment = .changed(["RONDO_B": "new", "HOME": nil])
            $0.arguments += ["name", "one argument with spaces"]
        }
        #expect(changed == "/usr\nparent's new\none argument with spaces\n")
        // The parent's need not be UTF-8.
        setenv("RONDO_A", [0x63, CChar(bitPattern: 0xE9), 0], 1)
        let bytes = try text("printf %s \"$RONDO_A\" | od -An -tx1") {
            $0.environment = .changed(["RONDO_B": "new"])
        }
        #expect(bytes.split(separator: " ").map { $0.prefix(2) } == ["63", "e9"])
        let exact = try text(script) { $0.environment = .exactly(["RONDO_B": "alone"]) }
        #expect(exact.split(separator: "\n").dropFirst().first == "alone")
        let (directory, variable) = (
            FileManager.default.currentDirectoryPath, getenv("HOME").map { String(cString: $0) }
        )
        #expect(try text("pwd; echo $HOME") == "\(directory)\n\(variable ?? "")\n")
    }
}
