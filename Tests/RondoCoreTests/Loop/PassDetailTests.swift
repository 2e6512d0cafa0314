import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoCore

/// Details of the steps of a pass.
@Suite(.leavesNothing) struct PassDetailTests {
    @Test func `a turn that a callback of another turn makes does not end that one`() throws {
        let found = try onLoopThread { loop -> [Bool] in
            var found: [Bool] = []
            loop.threadState.turn {
                loop.threadState.turn { found.append(loop.threadState.isInTurn) }
                found.append(loop.threadState.isInTurn)
            }
            return found + [loop.threadState.isInTurn]
        }
        #expect(found == [true, true, false])
    }

    @Test func `PL-19 a pass looks at no closure that waits for other modes`() throws {
        let found = try onLoopThread { loop -> [Int] in
            let log = EventLog()
            for mode in [RunLoop.Mode.default, .work] { loop.add(Port(), forMode: mode) }
            for _ in 0..<100 {
                loop.perform(order: 0, modes: [.work, .common, .work], target: log) { $0.note("called") }
            }
            let lookedAt: () -> Int = { loop.state.withLock { $0.orderedPerforms.lookedAt } }
            var found: [Int] = []
            loop.add(Port(), forMode: .inner)
            for mode in [RunLoop.Mode.inner, .inner, .work, .default, .work] {
                loop.poll(mode)
                found += [lookedAt(), log.entries.count]
            }
            // The second is left, and the next pass in default does not look at it.
            for mode in [RunLoop.Mode.default, .inner] {
                loop.perform(order: 0, modes: [mode], target: log) { $0.note("called") }
            }
            for mode in [RunLoop.Mode.default, .default] { loop.poll(mode) }
            return found + [lookedAt(), log.entries.count]
        }
        #expect(found == [0, 0, 0, 0, 100, 100, 100, 100, 100, 100, 102, 101])
    }

    /// Asks a loop for attention before each of its passes, as another thread may, a limited number of times.
    private final class Waker: RunLoop.Instrument {
        private let loop: RunLoop
        private let left = Mutex(100_000)

        init(_ loop: RunLoop) { self.loop = loop }

        var isUsedUp: Bool { left.withLock { $0 == 0 } }

        func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
            guard loop === self.loop, event.kind == .entry || event.kind == .pass else { return }
            let asks = left.withLock { left in
                defer { left = max(0, left - 1) }
                return left > 0
            }
            if asks { loop.attention.askAgain() }
        }
    }

    @Test func `RL-33 a loop that is woken in each pass notices that its time has passed`() throws {
        let isUsedUp = try onLoopThread { loop in
            let waker = Waker(loop)
            loop.add(Port(), forMode: .work)
            InstrumentTurn.take {
                RunLoop.instrument = waker
                defer { RunLoop.instrument = nil }
                _ = loop.run(in: .work, for: 0.001, returnAfterSourceHandled: false)
            }
            return waker.isUsedUp
        }
        #expect(!isUsedUp)
    }

    @Test func `RL-57 the passes that serve a batch do not ask the kernel again`() throws {
        let log = EventLog()
        let looks = try onLoopThread { loop -> [Int] in
            let pipes = (1...4).map { _ in BytePipe() }
            let sources = pipes.enumerated().map { index, pipe in pipe.source("\(index)", to: log) }
            for source in sources { loop.add(source, forMode: .work) }
            // Their watchers are made.
            loop.poll(.work)
            guard let index = loop.state.withLock({ $0.existingIndex(of: .work) }),
                let modeLoop = loop.threadState.modeLoops[index]
            else { return [] }
            for pipe in pipes { pipe.write() }
            var looks = [modeLoop.looks]
            for _ in pipes {
                _ = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
                looks.append(modeLoop.looks)
            }
            for source in sources { source.invalidate() }
            return looks.map { $0 - looks[0] }
        }
        #expect(log.entries.sorted() == ["0", "1", "2", "3"])
        #expect(looks == [0, 1, 1, 1, 1])
    }

    @Test func `RL-52 (e) without a source that was served, blocks of a block wait for (k)`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            log.observe([.beforeWaiting, .afterWaiting], of: loop, in: .work)
            loop.perform(inModes: [.work]) {
                log.note("first")
                loop.perform(inModes: [.work]) {
                    log.note("second")
                    loop.stop()
                }
            }
            loop.runOn(.work)
        }
        #expect(log.entries == ["first", "beforeWaiting", "afterWaiting", "second"])
    }

    @Test func `RL-51 a loop that a descriptor has woken is not waiting`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            let source = pipe.source("descriptor", to: log) { log.note("\(loop.isWaiting)") }
            loop.add(source, forMode: .work)
            let writer = LoopThread { _ in
                try? loop.waitUntilAsleep()
                pipe.write()
            }
            _ = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
            log.note("\(loop.isWaiting)")
            _ = try? writer.value()
            source.invalidate()
        }
        #expect(log.entries == ["descriptor", "false", "false"])
    }

    @Test func `RL-31 a run of a single pass serves one of several ready descriptors`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipes = [BytePipe(), BytePipe()]
            let sources = pipes.map { $0.source("descriptor", to: log) }
            for source in sources { loop.add(source, forMode: .work) }
            for pipe in pipes { pipe.write() }
            loop.poll(.work)
            for source in sources { source.invalidate() }
        }
        #expect(log.entries == ["descriptor"])
    }

    @Test
    func `RL-31 RL-57 what an earlier run has left and is not ready any more hides no ready descriptor`()
        throws
    {
        let log = EventLog()
        let result = try onLoopThread { loop -> RunLoop.RunResult in
            let (first, second, third) = (BytePipe(), BytePipe(), BytePipe())
            let sources = [
                first.source("left", to: log), second.source("left", to: log), third.source("new", to: log),
            ]
            for source in sources { loop.add(source, forMode: .work) }
            for pipe in [first, second] { pipe.write() }
            // It serves one, and leaves the other to the next run.
            _ = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
            for pipe in [first, second] { pipe.drain() }
            third.write()
            let result = loop.run(in: .work, for: 0, returnAfterSourceHandled: true)
            for source in sources { source.invalidate() }
            return result
        }
        #expect(result == .handledSource)
        #expect(log.entries == ["left", "new"])
    }

    @Test func `RL-56 a pass that serves a signalled source serves one ready kind, not every one`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            let source = pipe.source("descriptor", to: log)
            loop.add(source, forMode: .work)
            loop.poll(.work)
            pipe.write()
            loop.addSignalled("signalled", to: log, mode: .work)
            loop.addDueTimer("timer", to: log, mode: .work)
            _ = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
            source.invalidate()
        }
        #expect(log.entries.count == 2, "\(log.entries)")
        #expect(log.entries.first == "signalled")
    }

    @Test func `RL-69 adding on the loop's own thread wakes nothing`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            let waits = RunLoop.Observer(activities: [.beforeWaiting]) { observer, _ in
                log.note("wait")
                if log.count(of: "wait") == 1 { loop.add(RunLoop.Source {}, forMode: .work) }
            }
            loop.add(waits, forMode: .work)
            // A wake-up would end the first wait, and show as a second one.
            loop.add(
                Timer(timeInterval: 0.02, repeats: false) { _ in
                    log.note("timer")
                    loop.stop()
                }, forMode: .work)
            loop.runOn(.work)
            waits.invalidate()
        }
        #expect(log.entries == ["wait", "timer"])
    }

    @Test func `TM-26 a timer with a tolerance fires within it, by a clock that shows every nanosecond`()
        throws
    {
        let dates = try onLoopThread { loop -> [Double] in
            let clock = ManualClock()
            clock.attach(to: loop)
            nonisolated(unsafe) var dates: [Double] = []
            let timer = Timer(timeInterval: 10, repeats: true) { timer in
                dates.append(clock.elapsed)
                if dates.count == 3 { timer.invalidate() }
            }
            timer.tolerance = 2
            loop.add(timer, forMode: .work)
            loop.runOn(.work)
            return dates
        }
        #expect(dates.count == 3)
        for (index, date) in dates.enumerated() {
            let due = Double(index + 1) * 10
            #expect(date >= due && date <= due + 2, "\(dates)")
        }
    }

    @Test func `RL-4 the message about another thread's loop names both threads`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (first, second) = (RunLoopThread(name: "alpha"), RunLoopThread(name: "beta"))
            let loop = first.start()
            second.start()
            second.perform { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
            second.join()
        }
        let text = try #require(result).standardErrorText
        #expect(text.contains("thread beta"))
        #expect(text.contains("on the loop of thread alpha ("))
        #expect(text.contains("Call it on that thread, or use perform(_:)"))
    }
}
