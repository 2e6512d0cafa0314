// The only import of Foundation's names is Rondo.
import Rondo
import RondoTestSupport
import Testing

/// Tests code that compiled under `import Rondo`, and waited for Foundation's run loop in silence. Each test fails if
/// its trap opens again.
@Suite(.timeLimit(.minutes(5))) struct TrapTests {
    @Test func `unqualified names mean Rondo's types`() {
        #expect(String(reflecting: NotificationQueue.self) == "RondoCore.NotificationQueue")
        #expect(NSNotificationQueue.self == NotificationQueue.self)
        // These stay Foundation's.
        #expect(String(reflecting: NotificationQueue.PostingStyle.self).hasPrefix("Foundation."))
        #expect(String(reflecting: FileHandle.self) == "Foundation.FileHandle")
    }

    @Test(arguments: [NotificationQueue.PostingStyle.asap, .whenIdle])
    func `trap 1 a notification that is enqueued is posted by Rondo's loop`(
        _ style: NotificationQueue.PostingStyle
    ) throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let name = Notification.Name("trap 1 \(UUID())")
            let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
                log.note("posted")
                loop.stop()
            }
            NotificationQueue.default.enqueue(Notification(name: name), postingStyle: style)
            loop.add(Port(), forMode: .default)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            NotificationCenter.default.removeObserver(token)
            return log.entries
        }
        #expect(entries == ["posted"])
    }

    @Test func `US-10 traps 1, 2, 5 and 9 where a name cannot work the compiler says what to do`() throws {
        let output = try Repository.snippets("--programs", "Tests/RondoTrapTests/Refused")
        #expect(output.contains("are right"), "\(output)")
    }

    @Test func `trap 9 a main loop that nothing runs is warned about, and says why nothing comes`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.05
            let timer = Timer(timeInterval: 0, repeats: true) { _ in }
            RunLoop.main.add(timer, forMode: .default)
            let warning = try waitFor("the warning") { LogCatcher.log.entries.first }
            precondition(warning.contains("The run loop of thread main has not been run"), warning)
            precondition(timer.whyNotDelivering.reason == .loopNeverRan)
        }
    }

    @Test func `trap 9 a task gets its callbacks from a RunLoopThread`() async throws {
        let worker = RunLoopThread(name: "worker")
        let loop = worker.start()
        let fired = await withCheckedContinuation { continuation in
            loop.add(
                Timer(timeInterval: 0, repeats: false) { _ in continuation.resume(returning: true) },
                forMode: .default)
        }
        #expect(fired)
        worker.stop()
        worker.join()
    }

    @Test
    func
        `trap 10 an observer with the main queue blocks its poster until the main loop runs in a common mode`()
        throws
    {
        try BuiltFiles.play("trap-10", of: "RondoMainLoopProbe")
    }
}

/// The clone that the tests were built from.
private enum Repository {
    /// Runs `Scripts/snippets`, and returns its output.
    static func snippets(_ arguments: String...) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let modules = try BuiltFiles.path("Modules")
        return try TestServerProcess.run(
            ["python3", root.appendingPathComponent("Scripts/snippets").path, "--modules", modules]
                + arguments.map { $0.hasPrefix("--") ? $0 : root.appendingPathComponent($0).path })
    }
}
