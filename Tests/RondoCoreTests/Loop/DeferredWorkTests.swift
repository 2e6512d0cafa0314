import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoCore

/// Work that is deferred until the callbacks of other descriptors have run, and the limits of that. (The
/// clock stands still, or a slow machine would have it done earlier.)
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct DeferredWorkTests {
    private final class Work: DeferredWork {
        let name: String
        let log: EventLog
        let signals: RunLoop.Source?

        init(_ log: EventLog, _ name: String = "work", signals source: RunLoop.Source? = nil) {
            self.name = name
            self.log = log
            signals = source
        }

        func performDeferredWork() -> Bool {
            log.note(name)
            signals?.signal()
            return signals != nil
        }
    }

    /// Runs a mode in which `count` descriptors are ready; the callback of each defers work, or does it at
    /// once.
    private func entries(
        count: Int, mode: RunLoop.Mode = .work,
        then action: @escaping @Sendable (Int, RunLoop, ManualClock, EventLog) -> Void = { _, _, _, _ in },
        run: @escaping @Sendable (RunLoop, EventLog) -> Void = { loop, _ in loop.runOn(.work) }
    ) throws -> [String] {
        try onLoopThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            let log = EventLog()
            let pipes = (0..<count).map { _ in BytePipe() }
            for pipe in pipes {
                pipe.write()
                let source = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { source, _ in
                    log.note("call")
                    source.invalidate()
                    if !loop.deferWork(Work(log)) { log.note("now") }
                    action(log.count(of: "call"), loop, clock, log)
                }
                loop.add(source, forMode: mode)
            }
            run(loop, log)
            log.note("returned")
            return log.entries
        }
    }

    private func calls(_ count: Int) -> [String] { Array(repeating: "call", count: count) }
    private func works(_ count: Int) -> [String] { Array(repeating: "work", count: count) }
    private let most = DeferredWorkList.defaultMaximumCount

    @Test func `RL-52 deferred work is done when all ready descriptors were served, before the run returns`()
        throws
    {
        #expect(try entries(count: 5) == calls(5) + works(5) + ["returned"])
    }

    @Test func `at most 16 pieces of work are deferred`() throws {
        #expect(most == 16)
        #expect(
            try entries(count: 2 * most + 2) == calls(most) + works(most) + calls(most) + works(most)
                + calls(2) + works(2) + ["returned"])
    }

    @Test func `the work that one callback defers is bounded as well`() throws {
        let entries = try entries(count: 2) { [most] calls, loop, _, log in
            guard calls == 1 else { return }
            for _ in 0..<most where !loop.deferWork(Work(log)) { log.note("now") }
        }
        #expect(entries == ["call", "now"] + works(most) + ["call", "work", "returned"])
    }

    @Test func `deferred work waits for a millisecond and one callback at most`() throws {
        let entries = try entries(count: 4) { calls, _, clock, _ in
            if calls == 2 { clock.advance(by: 0.001) }
        }
        #expect(entries == calls(2) + works(2) + calls(2) + works(2) + ["returned"])
    }

    /// A timer's callback may take any time.
    @Test func `RL-52 deferred work waits for no timer that is due`() throws {
        let entries = try entries(count: 4) { calls, loop, _, log in
            if calls == 2 { loop.addDueTimer("timer", to: log, mode: .work) }
        }
        #expect(entries == calls(2) + works(2) + ["timer"] + calls(2) + works(2) + ["returned"])
    }

    @Test func `deferred work is done before a nested run begins`() throws {
        let entries = try entries(count: 4) { calls, loop, _, log in
            guard calls == 2 else { return }
            loop.addDueTimer("inner", to: log, mode: .inner)
            loop.runOn(.inner)
        }
        #expect(entries == calls(2) + works(2) + ["inner"] + calls(2) + works(2) + ["returned"])
    }

    @Test func `RL-37 nothing is deferred in a run that returns after a source`() throws {
        let entries = try entries(count: 2) { _, _, _, _ in
        } run: { loop, log in
            for _ in 1...2 {
                let result = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
                log.note("\(result)")
            }
        }
        #expect(entries == ["call", "now", "handledSource", "call", "now", "handledSource", "returned"])
    }

    /// `run(until:)` repeats runs that return after a source, without other calls between them.
    @Test func `RL-36 work is deferred in run(until:)`() throws {
        let entries = try entries(count: 3, mode: .default) { _, _, _, _ in
        } run: { loop, _ in
            loop.run(until: .distantFuture)
        }
        #expect(entries == calls(3) + works(3) + ["returned"])
    }

    @Test func `RL-31 deferred work is done in the pass that reaches the limit`() throws {
        let entries = try entries(count: 2) { _, _, _, _ in
        } run: { loop, log in
            for _ in 1...2 { log.note("\(loop.poll(.work))") }
        }
        #expect(entries == ["call", "work", "timedOut", "call", "work", "timedOut", "returned"])
    }

    @Test
    func `RL-52 with an observer nothing is deferred, and earlier deferred work is done in the next pass`()
        throws
    {
        let entries = try entries(count: 4) { calls, loop, _, _ in
            guard calls == 2 else { return }
            loop.add(RunLoop.Observer(activities: .exit) { _, _ in }, forMode: .tracking)
        }
        #expect(entries == calls(2) + works(2) + ["call", "now", "call", "now", "returned"])
    }

    @Test func `RL-52 deferred work is done before the loop sleeps`() throws {
        let entries = try entries(count: 3) { _, _, _, _ in
        } run: { loop, log in
            let source = RunLoop.Source {}
            loop.add(source, forMode: .work)
            let elsewhere = LoopThread { _ in
                #expect(throws: Never.self) { try loop.waitUntilAsleep() }
                log.note("asleep")
                loop.stop()
            }
            #expect(loop.runOn(.work) == .stopped)
            #expect(throws: Never.self) { try elsewhere.value() }
            source.invalidate()
        }
        #expect(entries == calls(3) + works(3) + ["asleep", "returned"])
    }

    @Test
    func `RL-52 a source that deferred work signals is served before the next work, and blocks after it`()
        throws
    {
        let entries = try entries(count: 2) { calls, loop, _, log in
            guard calls == 1 else { return }
            let source = RunLoop.Source {
                log.note("source")
                loop.perform(inModes: [.work]) {
                    log.note("block")
                    loop.stop()
                }
            }
            loop.add(source, forMode: .work)
            #expect(loop.deferWork(Work(log, "signal", signals: source)))
            #expect(loop.deferWork(Work(log, "last")))
        }
        #expect(
            entries == calls(2) + ["work", "signal", "source", "block", "last", "work", "returned"])
    }

    @Test func `SRC-6 a source that is signalled meanwhile comes before the one that deferred work signals`()
        throws
    {
        let entries = try entries(count: 2) { calls, loop, _, log in
            guard calls == 2 else { return }
            let source = RunLoop.Source { log.note("deferred") }
            loop.add(source, forMode: .work)
            #expect(loop.deferWork(Work(log, "signal", signals: source)))
            loop.addSignalled("source", to: log, mode: .work) { loop.stop() }
        }
        #expect(entries == calls(2) + ["source", "work", "work", "signal", "returned"])
    }

    @Test func `no work is deferred by another thread or for a loop that does not run`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            #expect(!loop.deferWork(Work(log)))
            loop.perform(inModes: [.work]) {
                let elsewhere = LoopThread { _ in
                    if loop.deferWork(Work(log)) { log.note("deferred") }
                }
                #expect(throws: Never.self) { try elsewhere.value() }
                loop.stop()
            }
            loop.runOn(.work)
        }
        #expect(log.entries == [])
    }

    @Test func `deferring can be switched off`() throws {
        let entries = try entries(count: 3) { _, _, _, _ in
        } run: { loop, _ in
            loop.threadState.deferred.maximumCount = 0
            loop.runOn(.work)
        }
        #expect(entries == ["call", "now", "call", "now", "call", "now", "returned"])
    }

    /// Its end has the loop run.
    private final class LastingWork: DeferredWork {
        let end: () -> Void

        init(_ end: @escaping () -> Void) { self.end = end }

        deinit { end() }

        func performDeferredWork() -> Bool { false }
    }

    @Test func `work that is deferred while other work is released is done`() throws {
        let entries = try entries(count: 3) { calls, loop, _, log in
            guard calls == 1 else { return }
            loop.add(RunLoop.Source {}, forMode: .work)
            let work = LastingWork {
                log.note("released")
                #expect(loop.deferWork(Work(log, "later")))
                loop.addDueTimer("inner", to: log, mode: .inner)
                loop.runOn(.inner)
                loop.stop()
            }
            #expect(loop.deferWork(work))
        }
        // The nested run begins with the work that is left.
        #expect(
            entries == calls(3) + ["work", "released", "work", "work", "later", "inner", "returned"])
    }

    @Test func `deferred work is done when the thread ends`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            // As if the thread ended inside a callback, which a Swift thread cannot.
            loop.threadState.deferred.append(Work(log), began: LoopClock.now)
        }
        #expect(log.entries == ["work"])
    }
}
