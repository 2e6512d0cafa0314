import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct WakeTests {
    @Test func `RL-49 wakeUp starts a new pass and ends nothing`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            log.observe([.beforeTimers, .afterWaiting], of: loop, in: .work)
            return loop.run(mode: .work, before: .distantFuture)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        loop.performWithoutWaking(inModes: [.work]) { log.note("block") }
        loop.wakeUp()
        try waitFor("the second pass") { log.count(of: "beforeTimers") == 2 && loop.isWaiting ? () : nil }
        #expect(log.entries == ["beforeTimers", "afterWaiting", "block", "beforeTimers"])
        loop.stop()
        #expect(try thread.value())
    }

    @Test func `RL-50 wake-ups before the loop reacts count as one`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            // Forgotten: the loop does not run yet.
            loop.wakeUp()
            log.observe(.beforeTimers, of: loop, in: .work)
            loop.perform(inModes: [.work]) { for _ in 1...100 { loop.wakeUp() } }
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        try waitFor("the sleep") { log.entries.isEmpty || !loop.isWaiting ? nil : () }
        // One pass with the block, and at most one extra.
        #expect(log.count(of: "beforeTimers") <= 2)
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `RL-50 wakeUp on a loop that is not running is forgotten`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            loop.wakeUp()
            log.observe(.beforeTimers, of: loop, in: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        #expect(log.entries == ["beforeTimers"])
        loop.stop()
        try thread.value()
    }

    @Test func `RL-51 a loop waits only while it is blocked`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            let note = { @Sendable (place: String) in log.note("\(place) \(loop.isWaiting)") }
            note("not running")
            loop.add(
                RunLoop.Observer(activities: .allActivities) { _, activity in note(activity.name) },
                forMode: .work)
            loop.add(Port(), forMode: .work)
            loop.perform(inModes: [.work]) { note("block") }
            loop.runOn(.work)
            note("after")
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        loop.stop()
        try thread.value()
        #expect(log.entries.count >= 8)
        #expect(log.entries.filter { $0.hasSuffix("true") } == [])
    }

    /// A wake-up that a nested activation took may have been meant for the outer one.
    @Test func `RL-60 a block for the outer mode is not forgotten by a nested run that served something`()
        throws
    {
        let log = EventLog()
        let pipe = BytePipe()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            loop.add(pipe.source("descriptor", to: log), forMode: .inner)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        defer { loop.stop() }
        try loop.waitUntilAsleep()
        for _ in 1...500 {
            // It runs in the next pass, before the sleep, without another wake-up.
            loop.perform(inModes: [.work]) {
                loop.performWithoutWaking(inModes: [.work]) { loop.run(mode: .inner, before: .distantFuture) }
            }
            try waitFor("the inner run") { loop.currentMode == .inner && loop.isWaiting ? () : nil }
            // Both end the same sleep, more often than not.
            pipe.write()
            try loop.waitForBlock(.work)
        }
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    /// Each round hands a block to a loop that is about to sleep, sleeps, or is just waking.
    @Test func `RL-45 no wake-up is lost on the way to sleep`() throws {
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        defer { loop.stop() }
        try loop.waitUntilAsleep()
        for _ in 1...5000 { try loop.waitForBlock(.work) }
        loop.stop()
        #expect(try thread.value() == .stopped)
    }
}
