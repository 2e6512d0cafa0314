import Rondo
import RondoTestSupport
import Testing

/// Rules of the main loop, each played by `RondoMainLoopProbe`, a program that has the main thread for
/// itself.
@Suite(.timeLimit(.minutes(5))) struct MainLoopTests {
    private static func play(
        _ scenario: String, _ arguments: String..., environment: [String] = []
    ) throws {
        try BuiltFiles.play(scenario, arguments, of: "RondoMainLoopProbe", environment: environment)
    }

    private static func server() throws -> TestServer {
        try TestServer.answering { _ in "body" }
    }

    /// The program's output ends with the child, so the test waits for the child, too.
    @Test func `a recorded program that goes on in a child by fork ends there`() throws {
        let name = "rondo-forked-\(UUID().uuidString)"
        let file = "\(NSTemporaryDirectory())/\(name)"
        defer { unlink(file) }
        try Self.play("forked", name, environment: ["RONDO_TRACE=\(file)"])
    }

    @Test func `RL-2 the main loop is the main thread's current one`() throws { try Self.play("RL-2") }

    @Test func `RL-2 the main loop is the main thread's current one before a call asks for that`() throws {
        try Self.play("unasked")
    }

    @Test(arguments: ["main", "current"])
    func `RL-6 what an asynchronous main loses with the main loop is logged once`(name: String) throws {
        let output = try TestServerProcess.run([BuiltFiles.path("RondoAsyncMainProbe"), name])
        let lines = output.split(separator: "\n")
        let warnings = lines.filter { $0.contains("The main thread ends before the program") }
        #expect(warnings.count == 1 && warnings[0].contains("default: 1 timer (tick)"), "\(output)")
        #expect(lines.last == "the loop has ended")
    }

    @Test func `RL-3 the main loop does not run by itself`() throws { try Self.play("RL-3") }

    @Test func `RL-14 the main loop is never empty in a common mode`() throws { try Self.play("RL-14") }

    @Test func `RL-45 a stop from another thread is heard while the main loop begins to watch its queue`()
        throws
    {
        try Self.play("RL-45")
    }

    @Test func `RL-58 from the second pass on the main queue skips the wait`() throws {
        try Self.play("RL-58")
    }

    @Test func `RL-58 where descriptors have run out the main queue is served as well`() throws {
        try Self.play("full")
    }

    @Test func `RL-52 RL-58 the main queue and ready descriptors take turns, also from run to run`() throws {
        try Self.play("turns")
    }

    @Test func `RL-52 deferred work does not wait for the main queue`() throws { try Self.play("RL-52") }

    @Test func `RL-59 the main queue is drained by the main loop only, in common modes, not nested`() throws {
        try Self.play("RL-59")
    }

    @Test func `RL-59 after a nested run inside a main-queue block the outer run drains the queue again`()
        throws
    {
        try Self.play("nested")
    }

    @Test func `RL-14 RL-59 the main queue is served in a mode that becomes common while it runs`() throws {
        try Self.play("joined")
    }

    @Test func `RL-59 main actor, main operations and delayed blocks work while the main loop runs`() throws {
        try Self.play("served")
    }

    @Test func `TM-29 setting the wall clock moves no firing`() throws { try Self.play("TM-29") }

    @Test func `a Dispatch source on the main queue can drive the main loop`() throws {
        try Self.play("embedded")
    }

    @Test func `RL-59 an embedded mode that becomes a common one serves the main queue from then on`() throws
    {
        try Self.play("late")
    }

    @Test func `a drain of the main queue is traced`() throws { try Self.play("traced") }

    @Test func `a main loop that is not run tells that the main queue waits`() throws {
        try Self.play("unserved")
    }

    @Test func `of a main thread that Dispatch has, nothing is said to wait`() throws {
        try Self.play("given-away")
    }

    @Test func `while Foundation's main loop runs, nothing is said to wait`() throws {
        try Self.play("foundation")
    }

    @Test func `TH-1 on the main thread, too, no callback comes before its loop runs`() throws {
        try Self.play("TH-1", Self.server().url().absoluteString)
    }

    @Test func `TH-3 scheduled on the main loop from another thread the callbacks come there, in that mode`()
        throws
    {
        try Self.play("TH-3", Self.server().url().absoluteString)
    }

    @Test func `UC-61 a synchronous request on the main thread serves nothing else of its loop`() throws {
        try Self.play("UC-61", Self.server().url().absoluteString)
    }

    @Test func `UC-63 to OperationQueue.main the handler comes once the main loop runs`() throws {
        try Self.play("UC-63", Self.server().url().absoluteString)
    }

    @Test func `US-18 the calls of a session with the main queue wait for a common mode, and lose nothing`()
        throws
    {
        try Self.play("US-18", Self.server().url().absoluteString)
    }

    @Test func `US-25 a nested run of the main loop serves another task to the same server`() throws {
        try Self.play("US-25", Self.server().url().absoluteString)
    }
}
