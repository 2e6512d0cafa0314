import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// Limits of time, and how a child is stopped (section CH of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ChildStopTests {
    /// A shell that says "ready" and then waits for its input, and ignores SIGTERM.
    private func stubborn(_ change: (inout Child.Configuration) -> Void = { _ in }) throws -> Child {
        var configuration = Child.Configuration(
            "/bin/sh", ["-c", "trap '' TERM; echo ready; while true; do read line || true; done"])
        // No bytes come and it does not end: the shell waits in `read`.
        configuration.standardInput = .stream
        configuration.standardOutput = .stream
        change(&configuration)
        let child = try Child.spawn(configuration)
        child.output?.open()
        var buffer = [UInt8](repeating: 0, count: 6)
        #expect(child.output?.read(&buffer, maxLength: 6) == 6)
        return child
    }

    private func end(of child: Child) throws -> Child.Status {
        try waitUntilGone(child.processIdentifier)
        return try waitFor("the status") { child.currentStatus }
    }

    @Test func `CH-16 a limit of time counts from the spawn, whether or not a mode of the child runs`() throws
    {
        let child = try Child.spawn("cat", standardInput: .stream)
        // A mode that is never run.
        child.schedule(in: .main, forMode: RunLoop.Mode("other"))
        // From the spawn: it has passed.
        child.stop(after: .leastNonzeroMagnitude)
        #expect(child.wait() == .signalled(SIGTERM, coreDumped: false))
        child.unschedule(from: .main, forMode: RunLoop.Mode("other"))
        #expect(child.wasStopped)
    }

    @Test func `CH-16 CH-17 limits and steps count by the machine's clock, not by that of a loop`() throws {
        let limited = try Child.spawn("cat", standardInput: .stream)
        let stopped = try stubborn { $0.stopping = [.init(signal: SIGTERM, seconds: 0)] }
        defer { for child in [limited, stopped] { child.kill() } }
        try onLoopThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            clock.advance(by: 3600)
            limited.stop(after: .leastNonzeroMagnitude)
            stopped.stop()
        }
        #expect(try end(of: limited) == .signalled(SIGTERM, coreDumped: false))
        #expect(try end(of: stopped) == .signalled(SIGKILL, coreDumped: false))
        stopped.output?.close()
    }

    @Test func `CH-16 a child that has ended in time is not stopped`() throws {
        let child = try Child.spawn("cat", standardInput: .stream)
        child.stop(after: testPatience + 5)
        #expect(!child.stopTimerIsGone)
        child.input?.open()
        child.input?.close()
        #expect(try end(of: child) == .exited(0))
        #expect(!child.wasStopped)
        try child.waitUntilStopTimerIsGone()
    }

    @Test func `CH-16 a task's limit of time, and its cancellation, stop the child`() async throws {
        await #expect {
            try await Child.run("tail", ["-f", "/dev/null"], timeLimit: 0, output: .string(limit: 10))
        } throws: { ($0 as? ChildError)?.code == .timeLimit }
        let task = Task { try await Child.run("tail", ["-f", "/dev/null"], output: .string(limit: 10)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `CH-17 the steps are taken one after another, and the last is SIGKILL`() throws {
        let child = try stubborn {
            $0.stopping = [
                .init(signal: SIGTERM, seconds: 0), .init(signal: SIGINT, seconds: testPatience + 5),
            ]
        }
        child.stop()
        #expect(try end(of: child) == .signalled(SIGINT, coreDumped: false))
        let killed = try stubborn { $0.stopping = [.init(signal: SIGTERM, seconds: 0)] }
        killed.stop()
        #expect(try end(of: killed) == .signalled(SIGKILL, coreDumped: false))
        for child in [child, killed] { child.output?.close() }
    }

    @Test func `CH-17 a second stop changes nothing: the remaining steps are taken`() throws {
        let child = try stubborn { $0.stopping = [.init(signal: SIGTERM, seconds: testPatience + 5)] }
        child.stop()
        #expect(!child.stopTimerIsGone)
        child.stop()
        #expect(!child.stopTimerIsGone)
        child.kill()
        #expect(try end(of: child) == .signalled(SIGKILL, coreDumped: false))
        child.output?.close()
    }

    @Test func `CH-17 after the end the remaining steps are dropped`() throws {
        let child = try Child.spawn("cat", standardInput: .stream)
        child.stop()
        #expect(try end(of: child) == .signalled(SIGTERM, coreDumped: false))
        try child.waitUntilStopTimerIsGone()
        child.stop()
        #expect(child.stopTimerIsGone)
    }

    @Test func `CH-18 of a child that leads a group the whole group is stopped`() throws {
        var configuration = Child.Configuration("/bin/sh", ["-c", "exec 3<&0; cat <&3 & echo ready; cat"])
        configuration.group = .own
        configuration.standardInput = .stream
        configuration.standardOutput = .stream
        let child = try Child.spawn(configuration)
        child.output?.open()
        var ready = [UInt8](repeating: 0, count: 6)
        #expect(child.output?.read(&ready, maxLength: 6) == 6)
        child.stop()
        _ = try end(of: child)
        // The grandchild had the same pipe: its end is that of the group.
        var buffer = [UInt8](repeating: 0, count: 100)
        while let count = child.output?.read(&buffer, maxLength: 100), count > 0 {}
        #expect(child.output?.streamStatus == .atEnd)
        child.output?.close()
    }
}

extension Child {
    fileprivate var stopTimerIsGone: Bool { debugDescription.contains("no limit of time") }

    /// It goes a moment after the status is known.
    fileprivate func waitUntilStopTimerIsGone() throws {
        try waitFor("the timer to go") { stopTimerIsGone ? () : nil }
    }
}
