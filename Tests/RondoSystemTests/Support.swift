import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// A process that runs a script of the shell, with nothing to read.
func shell(_ script: String) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script]
    process.standardInput = nil
    return process
}

/// Starts the process on a thread that ends then: the loops of tests' own threads outlive a test, and are not run.
func start(_ process: Process) throws {
    try onLoopThread { _ in Result { try process.run() } }.get()
}

/// As `start(_:)`; where the process cannot be started, the test has failed.
@discardableResult
func launch(_ process: Process) -> Process {
    do { try start(process) } catch { Issue.record(error) }
    return process
}

/// As `launch(_:)`, on the calling thread, which has to have a loop of its own.
@discardableResult
func launchHere(_ process: Process) -> Process {
    do { try process.run() } catch { Issue.record(error) }
    return process
}

/// Waits by `waitUntilExit()` on a thread of its own.
func waitForEnd(_ process: Process) {
    do { try onLoopThread { _ in process.waitUntilExit() } } catch { Issue.record(error) }
}

/// A process that ends when its input does, which the caller holds.
func reader() -> (process: Process, input: FileHandle) {
    let pipe = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/cat")
    process.standardInput = pipe
    process.standardOutput = nil
    return (process, pipe.fileHandleForWriting)
}

/// Runs the process to its end, and returns what it has written.
func output(of process: Process) -> String {
    let pipe = Pipe()
    process.standardOutput = pipe
    launch(process)
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    waitForEnd(process)
    return String(decoding: data, as: UTF8.self)
}

/// Whether the kernel knows the process: it runs, or is a zombie.
func isKnown(_ process: Int32) -> Bool { kill(process, 0) == 0 }

/// The letter that the kernel has for what a process does; nil: there is none.
func stateOf(_ process: Int32) -> Character? {
    let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return stat.flatMap { $0.split(separator: ")").last }?.dropFirst().first
}

extension Trait where Self == LeavesNothing {
    /// As `.leavesNothing`; what is made with the first child stays.
    static var leavesNoChild: Self {
        .leavesNothing {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/true")
            launch(process)
            try? waitUntilGone(process.processIdentifier)
        }
    }
}

/// Waits until the kernel does not know the process any more.
func waitUntilGone(_ process: Int32) throws {
    try waitFor("process \(process) to be collected") { isKnown(process) ? nil : () }
}

extension RunLoop {
    /// Runs `mode` until the loop is stopped; a failure reaches the limit.
    @discardableResult
    func runUntilStopped(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: testPatience + 5, returnAfterSourceHandled: false)
    }
}

/// Plays a scenario of the helper program.
func play(_ scenario: String, _ arguments: String...) throws {
    try BuiltFiles.play(scenario, arguments, of: "RondoChildProbe")
}
