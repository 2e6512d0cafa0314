import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Tests how the end of a child is found and told (section CH of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ChildEndTests {
    private static let other = RunLoop.Mode("other")

    @Test func `CH-2 the end is told once, in a mode of the child, and in the first pass if it came before`()
        throws
    {
        let log = try onLoopThread { loop -> [String] in
            let log = EventLog()
            loop.add(Port(), forMode: .default)
            do {
                let child = try Child.spawn("false")
                child.onEnd = { _, status in log.note("\(status) in \(loop.currentMode?.rawValue ?? "none")")
                }
                child.schedule(in: loop, forMode: Self.other)
                try waitFor("the end") { child.currentStatus == nil ? nil : () }
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                log.note("default was run")
                _ = loop.run(in: Self.other, for: testPatience + 5, returnAfterSourceHandled: true)
                _ = loop.run(in: Self.other, for: 0, returnAfterSourceHandled: false)
                child.schedule(in: loop, forMode: .default)
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            } catch {
                Issue.record(error)
            }
            return log.entries
        }
        #expect(log == ["default was run", "exited with 1 in other"])
    }

    /// Schedules a child on a loop, and returns the status that its handler is told.
    private static func end(of child: Child) throws -> Child.Status? {
        try onLoopThread { loop in
            let seen = Mutex<Child.Status?>(nil)
            child.onEnd = { _, status in
                seen.withLock { $0 = status }
                loop.stop()
            }
            child.schedule(in: loop, forMode: .default)
            loop.runUntilStopped()
            return seen.withLock { $0 }
        }
    }

    @Test func `CH-2 a child scheduled after it was collected still reports its end`() throws {
        let child = try Child.spawn("true")
        try waitUntilGone(child.processIdentifier)
        #expect(try Self.end(of: child) == .exited(0))
    }

    @Test(arguments: [RunLoop.Mode.default, .common])
    func `CH-2 a child in default and under common is told of in default after it leaves one`(
        _ left: RunLoop.Mode
    ) throws {
        let child = try Child.spawn("true", standardOutput: .collected(limit: 10))
        try waitUntilGone(child.processIdentifier)
        let told = try onLoopThread { loop -> Bool in
            let log = EventLog()
            child.onCompletion = { _, _ in log.note("told") }
            child.schedule(in: loop, forMode: .default)
            child.schedule(in: loop, forMode: .common)
            child.unschedule(from: loop, forMode: left)
            while log.entries.isEmpty, loop.run(mode: .default, before: .distantFuture) {}
            return log.entries == ["told"]
        }
        #expect(told)
    }

    @Test func `CH-3 a handler for SIGCHLD and children of others are left alone`() throws {
        try play("foreign")
    }

    @Test
    func `CH-4 a child is collected if it is scheduled nowhere or its loop's thread has ended`() throws {
        let child = try Child.spawn("true")
        try waitUntilGone(child.processIdentifier)
        #expect(child.currentStatus == .exited(0))
        // While it is scheduled in a mode that does not run, the kernel keeps its status.
        let kept = try Child.spawn("cat", standardInput: .stream)
        try onLoopThread { loop in
            kept.schedule(in: loop, forMode: .default)
            kept.input?.open()
            kept.input?.close()
            var information = siginfo_t()
            // Without collecting it: waits until it has ended.
            waitid(P_PID, id_t(kept.processIdentifier), &information, WEXITED | WNOWAIT)
            #expect(isKnown(kept.processIdentifier))
        }
        try waitUntilGone(kept.processIdentifier)
        #expect(kept.currentStatus == .exited(0))
    }

    @Test func `CH-5 the end of the child is that of its own process`() throws {
        let child = try Child.spawn("/bin/sh", ["-c", "exec 3<&0; cat <&3 & exit 4"], standardInput: .stream)
        #expect(try Self.end(of: child) == .exited(4))
        // The grandchild reads until now.
        child.input?.open()
        child.input?.close()
    }

    @Test func `CH-6 the status is a code, a signal with or without a core, or unknown`() throws {
        let code = try Child.spawn("/bin/sh", ["-c", "exit 200"])
        #expect(code.wait() == .exited(200))
        let signalled = try Child.spawn("/bin/sh", ["-c", "ulimit -c 0; kill -SEGV $$"])
        #expect(signalled.wait() == .signalled(SIGSEGV, coreDumped: false))
        let lost = try Child.spawn("cat", standardInput: .stream)
        // Scheduled where nothing runs, so that no loop collects it.
        lost.schedule(in: .main, forMode: Self.other)
        lost.input?.open()
        lost.input?.close()
        var status: Int32 = 0
        #expect(waitpid(lost.processIdentifier, &status, 0) == lost.processIdentifier)
        #expect(lost.currentStatus == .unknown)
        lost.unschedule(from: .main, forMode: Self.other)
    }

    @Test func `CH-7 signals go to the child, and after its end to no process`() throws {
        let child = try Child.spawn("cat", standardInput: .stream)
        child.schedule(in: .main, forMode: Self.other)
        try child.send(signal: SIGTERM)
        var information = siginfo_t()
        waitid(P_PID, id_t(child.processIdentifier), &information, WEXITED | WNOWAIT)
        // Not collected yet, when the kernel would take it.
        #expect { try child.send(signal: SIGTERM) } throws: { ($0 as? ChildError)?.systemCode == ESRCH }
        #expect(child.currentStatus == .signalled(SIGTERM, coreDumped: false))
        #expect { try child.send(signal: SIGTERM) } throws: { ($0 as? ChildError)?.systemCode == ESRCH }
        child.unschedule(from: .main, forMode: Self.other)
    }

    @Test func `CH-22 to let go of a child does not kill it, and leaves no zombie`() throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        let number = try Child.spawn("cat", standardInput: .descriptor(descriptor), standardOutput: .none)
            .processIdentifier
        #expect(isKnown(number))
        try pipe.fileHandleForReading.close()
        try pipe.fileHandleForWriting.close()
        try waitUntilGone(number)
    }

    @Test func `CH-23 in several loops the end is told once; threads and tasks can wait besides`()
        async throws
    {
        let child = try Child.spawn("cat", standardInput: .stream)
        let log = EventLog()
        child.onEnd = { _, _ in log.note("told") }
        let isThere = [Latch(), Latch()]
        let threads = (0..<2).map { index in
            LoopThread { loop in
                child.schedule(in: loop, forMode: .default)
                isThere[index].open()
                return loop.run(in: .default, for: testPatience + 5, returnAfterSourceHandled: false)
            }
        }
        let waiting = LoopThread { _ in child.wait() }
        for latch in isThere { try latch.wait() }
        for thread in threads { try thread.loop.waitUntilAsleep() }
        async let status = child.status
        child.input?.open()
        child.input?.close()
        #expect(await status == .exited(0))
        #expect(try waiting.value() == .exited(0))
        // The loop that has not told of it is left with nothing, and woken.
        for thread in threads { #expect(try thread.value() == .finished) }
        #expect(log.entries == ["told"])
    }

    @Test func `CH-24 a stop and its end are told where they are asked for`() throws {
        let child = try Child.spawn("cat", standardInput: .stream)
        let log = try onLoopThread { loop -> [String] in
            let log = EventLog()
            child.onStop = { child, stop in
                log.note("\(stop)")
                if stop == .continued { child.kill() } else { try? child.send(signal: SIGCONT) }
            }
            child.onCompletion = { _, status in
                log.note("\(status)")
                loop.stop()
            }
            child.schedule(in: loop, forMode: .default)
            try? child.send(signal: SIGSTOP)
            loop.runUntilStopped()
            return log.entries
        }
        #expect(log.prefix(2) == ["stopped(\(SIGSTOP))", "continued"])
        #expect(child.currentStatus == .signalled(SIGKILL, coreDumped: false))
    }

    @Test func `a child says why nothing was told`() throws {
        let child = try Child.spawn("cat", standardInput: .stream)
        #expect(child.whyNotDelivering.reason == .notScheduled)
        child.schedule(in: .main, forMode: Self.other)
        #expect([.loopNeverRan, .loopNotRunning].contains(child.whyNotDelivering.reason))
        child.unschedule(from: .main, forMode: Self.other)
        child.kill()
        try waitUntilGone(child.processIdentifier)
    }

    @Test func `hundreds of children on four threads leave no zombie and lose no end`() throws {
        let threads = (0..<4).map { thread in
            LoopThread { loop -> Int in
                let ended = Mutex(0)
                let count = 60
                for index in 0..<count {
                    guard let child = try? Child.spawn("/bin/sh", ["-c", "exit \((index + thread) % 5)"])
                    else { continue }
                    child.onEnd = { _, status in
                        guard status == .exited(Int32((index + thread) % 5)) else { return }
                        if ended.withLock({
                            $0 += 1; return $0 == count
                        }) {
                            loop.stop()
                        }
                    }
                    child.schedule(in: loop, forMode: index % 2 == 0 ? .default : .common)
                }
                loop.runUntilStopped()
                return ended.withLock { $0 }
            }
        }
        for thread in threads { #expect(try thread.value() == 60) }
        try waitFor("the last child to be collected") { zombies().isEmpty ? () : nil }
    }

    @Test func `children of every kind, with random deaths and children of their own, are each told of once`()
        throws
    {
        try play("stress", "200", "4", "1")
    }

    /// The children of this process that have ended and were not collected.
    private func zombies() -> [String] {
        let folders = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return folders.filter { folder in
            guard Int32(folder) != nil,
                let stat = try? String(contentsOfFile: "/proc/\(folder)/stat", encoding: .utf8),
                let rest = stat.split(separator: ")").last?.split(separator: " ")
            else { return false }
            return rest.first == "Z" && rest.dropFirst().first == "\(getpid())"
        }
    }
}
