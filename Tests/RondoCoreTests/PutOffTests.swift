import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoCore

/// What is put off until the descriptors that are ready have been served. (The clock stands still, or a slow machine would
/// have it done earlier.)
@Suite(.leavesNothing) struct PutOffTests {
    private final class Work: PutOffWork {
        let log: EventLog

        init(_ log: EventLog) { self.log = log }

        func doWhatWasPutOff(isOld: Bool) { log.note(isOld ? "old work" : "work") }
    }

    /// Runs a mode in which `count` descriptors are ready; the callback of each puts something off, or does it at once.
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
                    if !loop.putOff(Work(log)) { log.note("now") }
                    action(log.count(of: "call"), loop, clock, log)
                }
                loop.add(source, forMode: mode)
            }
            log.observe(.exit, of: loop, in: mode)
            run(loop, log)
            return log.entries
        }
    }

    @Test func `it is done when all that is ready has been served, before the run ends`() throws {
        let calls = Array(repeating: "call", count: 5)
        #expect(try entries(count: 5) == calls + Array(repeating: "work", count: 5) + ["exit"])
    }

    @Test func `it is done at once where nothing else is ready`() throws {
        #expect(try entries(count: 1) == ["call", "now", "exit"])
    }

    @Test func `there is never more of it than is documented`() throws {
        let entries = try entries(count: 3 * RunLoop.maximumPutOff + 2)
        let calls = Array(repeating: "call", count: RunLoop.maximumPutOff)
        let works = Array(repeating: "work", count: RunLoop.maximumPutOff)
        #expect(
            entries == calls + works + calls + works + calls + works + [
                "call", "call", "work", "work", "exit",
            ])
    }

    @Test func `it waits for a millisecond and one callback at most`() throws {
        let entries = try entries(count: 4) { calls, _, clock, _ in
            if calls == 2 { clock.advance(by: 0.001) }
        }
        #expect(entries == ["call", "call", "old work", "old work", "call", "call", "work", "work", "exit"])
    }

    @Test func `it is done before a nested run of another mode`() throws {
        let entries = try entries(count: 4) { calls, loop, _, log in
            guard calls == 2 else { return }
            loop.addDueTimer("inner", to: log, mode: .inner)
            loop.runOn(.inner)
        }
        #expect(
            entries == ["call", "call", "work", "work", "inner", "call", "call", "work", "work", "exit"])
    }

    @Test func `nothing is put off in a run that returns after a source`() throws {
        let entries = try entries(count: 3) { _, _, _, _ in
        } run: { loop, log in
            for _ in 1...3 {
                let result = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
                log.note("\(result)")
            }
        }
        #expect(
            entries == ["call", "now", "exit", "handledSource"] + ["call", "now", "exit", "handledSource"]
                + ["call", "now", "exit", "handledSource"])
    }

    /// It is a repetition of runs that return after a source, and nothing comes between.
    @Test func `it is put off in run(until:)`() throws {
        let entries = try entries(count: 3, mode: .default) { _, _, _, _ in
        } run: { loop, _ in
            loop.run(until: .distantFuture)
        }
        #expect(entries.filter { $0 != "exit" } == ["call", "call", "call", "work", "work", "work"])
    }

    @Test func `it is done before a timer fires and before a block runs`() throws {
        let entries = try entries(count: 4) { calls, loop, clock, log in
            if calls == 1 { loop.performWithoutWaking(inModes: [.work]) { log.note("block") } }
            if calls == 3 { loop.addDueTimer("timer", to: log, mode: .work) }
        }
        #expect(
            entries == [
                "call", "work", "block", "call", "call", "work", "work", "timer", "call", "now", "exit",
            ])
    }

    @Test func `it waits for one source that takes its time, and not for the next`() throws {
        let entries = try entries(count: 2) { calls, loop, clock, log in
            guard calls == 1 else { return }
            loop.addSignalled("slow", to: log, mode: .work) { clock.advance(by: 0.001) }
            loop.addSignalled("next", to: log, mode: .work) { loop.stop() }
        }
        #expect(entries == ["call", "slow", "old work", "next", "call", "now", "exit"])
    }

    /// Its end has the loop run.
    private final class LastingWork: PutOffWork {
        let end: () -> Void

        init(_ end: @escaping () -> Void) { self.end = end }

        deinit { end() }

        func doWhatWasPutOff(isOld: Bool) {}
    }

    @Test func `what is put off while something that was is released is done`() throws {
        let entries = try entries(count: 3) { calls, loop, _, log in
            guard calls == 1 else { return }
            let work = LastingWork {
                log.note("let go")
                for pipe in [BytePipe(), BytePipe()] {
                    pipe.write()
                    let source = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { source, _ in
                        // It keeps the pipe.
                        withExtendedLifetime(pipe) { source.invalidate() }
                        if !loop.putOff(Work(log)) { log.note("now") }
                    }
                    loop.add(source, forMode: .inner)
                }
                loop.runOn(.inner)
                log.note("released")
            }
            #expect(loop.putOff(work))
        }
        // At once, and those that come after it are done before it runs the loop.
        #expect(
            entries == ["call", "call", "call", "work", "let go"] + Array(repeating: "work", count: 4) + [
                "released", "exit",
            ])
    }

    /// As of many loads that begin in one turn of their source.
    @Test func `what is put off in one callback is bounded as well`() throws {
        let entries = try entries(count: 2) { calls, loop, _, log in
            guard calls == 1 else { return }
            for _ in 1...20 where !loop.putOff(Work(log)) { log.note("now") }
        }
        let works = Array(repeating: "work", count: RunLoop.maximumPutOff)
        #expect(
            entries == ["call"] + works + ["now", "call"] + Array(repeating: "work", count: 5) + ["exit"])
    }

    private final class OutlastingWork: PutOffWork {
        let log: EventLog

        init(_ log: EventLog) { self.log = log }

        func doWhatWasPutOff(isOld: Bool) { log.note("lasting work") }

        var outlastsTurn: Bool { true }
    }

    @Test func `of what is put off when the thread ends that is done which others may wait for`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            // As where the thread ends inside a callback, which none of Swift's threads can.
            loop.owner.putOff.append(Work(log), at: LoopClock.now)
            loop.owner.putOff.append(OutlastingWork(log), at: LoopClock.now)
        }
        #expect(log.entries == ["lasting work"])
    }

    @Test func `what may wait longer than its turn does not have others done before it`() throws {
        let entries = try entries(count: RunLoop.maximumPutOff + 2) { calls, loop, _, log in
            guard calls == RunLoop.maximumPutOff else { return }
            log.note(loop.putOff(OutlastingWork(log)) ? "put off" : "refused")
        }
        let calls = Array(repeating: "call", count: RunLoop.maximumPutOff)
        let works = Array(repeating: "work", count: RunLoop.maximumPutOff)
        #expect(entries == calls + ["refused"] + works + ["call", "call", "work", "work", "exit"])
    }
}
