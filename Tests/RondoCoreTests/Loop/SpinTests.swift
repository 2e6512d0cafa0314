import RondoCore
import RondoTestSupport
import RondoTesting
import Testing

/// A loop that spins does what one that sleeps does, in the same order.
@Suite(.leavesNothing) struct SpinTests {
    @Test func `a spin has a limit, and the default is no spin`() throws {
        let durations = try onLoopThread { loop in
            [.zero, 20e-6, -1, .nan, .infinity, 1].map { (duration: TimeInterval) -> TimeInterval in
                if duration != 0 { loop.spinDuration = duration }
                return loop.spinDuration
            }
        }
        let limit = RunLoop.maximumSpinDuration
        #expect(durations == [0, 20e-6, 0, 0, limit, limit])
    }

    /// Each round asks a loop that is about to spin, spins, is about to sleep, sleeps, or is just waking.
    @Test func `RL-45 no wake-up is lost on the way from spinning to sleep`() throws {
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        defer { loop.stop() }
        for round in 1...4000 {
            // From no spin at all to spins that always last until the next round.
            loop.spinDuration = [0, 2e-6, 10e-6, RunLoop.maximumSpinDuration][round % 4]
            try loop.waitForBlock(.work)
        }
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `RL-55 observers see a spin as they see a sleep`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.spinDuration = RunLoop.maximumSpinDuration
            loop.add(Port(), forMode: .work)
            log.observe([.beforeWaiting, .afterWaiting], of: loop, in: .work)
            loop.add(
                RunLoop.Observer(activities: .allActivities) { _, _ in
                    if loop.isWaiting { log.note("waits in a callback") }
                }, forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        for _ in 1...100 {
            try waitFor("the wait") { loop.isWaiting ? () : nil }
            let done = DispatchSemaphore(value: 0)
            loop.perform(inModes: [.work]) {
                log.note("block")
                done.signal()
            }
            done.wait()
        }
        try waitFor("the last wait") { loop.isWaiting ? () : nil }
        loop.stop()
        #expect(try thread.value() == .stopped)
        let round = ["beforeWaiting", "afterWaiting", "block"]
        #expect(log.entries == Array(repeating: round, count: 100).flatMap { $0 } + round.prefix(2))
    }

    @Test func `a descriptor that becomes ready ends a spin`() throws {
        let log = EventLog()
        let pipe = BytePipe()
        let done = DispatchSemaphore(value: 0)
        let thread = LoopThread { loop in
            loop.spinDuration = RunLoop.maximumSpinDuration
            loop.add(pipe.source("read", to: log) { done.signal() }, forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        for _ in 1...300 {
            pipe.write()
            guard done.wait(timeout: .now() + 30) == .success else {
                Issue.record("a descriptor was not served")
                break
            }
        }
        loop.stop()
        #expect(try thread.value() == .stopped)
        #expect(log.entries == Array(repeating: "read", count: 300))
    }

    @Test func `TM-1 a timer whose date comes in a spin is not early`() throws {
        let early = try onLoopThread { loop -> Int in
            loop.spinDuration = RunLoop.maximumSpinDuration
            let dates = DateLog()
            let timer = Timer(timeInterval: 200e-6, repeats: true) { timer in
                // By the date that it is for: it is set to the next one after the block.
                if Date() < timer.fireDate - 50e-6 { dates.note(Date()) }
                loop.perform(inModes: [.work]) {}
            }
            loop.add(timer, forMode: .work)
            _ = loop.run(in: .work, for: 0.05, returnAfterSourceHandled: false)
            timer.invalidate()
            return dates.dates.count
        }
        #expect(early == 0)
    }

    @Test func `RL-33 a limit that comes in a spin ends the run`() throws {
        let results = try onLoopThread { loop -> [RunLoop.RunResult] in
            loop.spinDuration = RunLoop.maximumSpinDuration
            loop.add(Port(), forMode: .work)
            return (1...20).map { _ in loop.run(in: .work, for: 300e-6, returnAfterSourceHandled: true) }
        }
        #expect(results == Array(repeating: .timedOut, count: 20))
    }

    @Test func `a clock that a test controls does not advance in a spin`() throws {
        let entries = try onLoopThread { loop -> [String] in
            let log = EventLog()
            let clock = ManualClock()
            clock.attach(to: loop)
            loop.spinDuration = RunLoop.maximumSpinDuration
            for (name, seconds) in [("hour", 3600.0), ("instant", 1e-6), ("second", 1)] {
                let timer = Timer(timeInterval: seconds, repeats: false) { _ in log.note(name) }
                loop.add(timer, forMode: .work)
            }
            log.note("\(loop.runOn(.work))")
            _ = loop.run(in: .work, for: 7200, returnAfterSourceHandled: false)
            return log.entries + ["\(clock.elapsed >= 3600)"]
        }
        let fired = entries.filter { $0 != "timedOut" && $0 != "finished" }
        #expect(fired == ["instant", "second", "hour", "true"])
    }
}
