import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct BlockTests {
    @Test func `RL-60 a block runs once, on the loop's thread, in one of its modes`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let thread = pthread_self()
            let here = { @Sendable in pthread_equal(thread, pthread_self()) != 0 }
            for mode in [RunLoop.Mode.default, .tracking, .work, .other, .inner] {
                loop.add(Port(), forMode: mode)
            }
            let other = try? onLoopThread { _ in
                loop.perform(inModes: [.work, .other]) { log.note("work or other \(here())") }
                loop.perform { log.note("default \(here())") }
                loop.perform(inModes: [.common]) { log.note("common \(here())") }
                loop.perform(inModes: [.work, .common]) { log.note("work or common \(here())") }
                loop.perform(inModes: []) { log.note("no mode") }
                return true
            }
            if other == nil { log.note("the other thread failed") }
            for mode in [RunLoop.Mode.inner, .other, .work, .tracking, .default] {
                log.note(mode.rawValue)
                loop.poll(mode)
            }
            return log.entries
        }
        #expect(
            entries == [
                "inner", "other", "work or other true", "work", "work or common true",
                RunLoop.Mode.tracking.rawValue, "common true", RunLoop.Mode.default.rawValue, "default true",
            ])
    }

    @Test func `RL-60 RL-62 blocks for several modes run once, in their order beside others`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let modes: [[RunLoop.Mode]] = [
                [.other], [.work, .other], [.work], [.other, .common], [.other, .work, .common], [.common],
            ]
            for round in 1...2 {
                for (number, modes) in modes.enumerated() {
                    loop.perform(inModes: modes) { log.note("\(round).\(number)") }
                }
            }
            for mode in [RunLoop.Mode.work, .default, .other, .work, .default, .other] {
                log.note(mode == .default ? "default" : mode.rawValue)
                loop.poll(mode)
            }
            return log.entries
        }
        #expect(
            entries == [
                "work", "1.1", "1.2", "1.4", "2.1", "2.2", "2.4", "default", "1.3", "1.5", "2.3", "2.5",
                "other", "1.0", "2.0", "work", "default", "other",
            ])
    }

    @Test func `RL-61 perform wakes a sleeping loop, performWithoutWaking does not`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .default)
            log.observe(.afterWaiting, of: loop, in: .default)
            return loop.runOn()
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        loop.performWithoutWaking(inModes: [.default]) { log.note("without") }
        #expect(loop.isWaiting)
        #expect(log.entries == [])
        loop.perform {
            log.note("with")
            loop.stop()
        }
        #expect(try thread.value() == .stopped)
        #expect(log.entries == ["afterWaiting", "without", "with"])
    }

    @Test func `RL-61 a block for several modes wakes a sleeping loop as well`() throws {
        let log = EventLog()
        let (thread, loop) = try loopThreadAsleep()
        loop.perform(inModes: [.default, .work]) {
            log.note("block")
            loop.stop()
        }
        #expect(try thread.value() == .stopped)
        #expect(log.entries == ["block"])
    }

    @Test func `RL-62 blocks run in the order queued and keep their place`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            for (name, modes) in [
                ("1", [RunLoop.Mode.default]), ("2", [.common]), ("3", [.work]), ("4", [.default, .work]),
                ("5", [.common, .default]), ("6", [.default]), ("7", [.work]), ("8", [.tracking]),
            ] {
                loop.perform(inModes: modes) { log.note(name) }
            }
            loop.poll()
            loop.perform(inModes: [.work]) { log.note("9") }
            loop.poll(.work)
            loop.poll(.tracking)
            return log.entries
        }
        #expect(entries == ["1", "2", "4", "5", "6", "3", "7", "9", "8"])
    }

    /// Several threads perform blocks for changing modes, which reach the loop by the intake and by the
    /// queues of modes.
    @Test func `RL-62 each thread's blocks keep their order, whatever their modes`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .default)
            return loop.runOn()
        }
        let loop = try thread.loop
        let modes: [[RunLoop.Mode]] = [[.default], [.common], [.default, .work], [.default], [.default]]
        let count = 2000
        let performers = (0..<3).map { performer in
            LoopThread { _ in
                for number in 0..<count {
                    loop.perform(inModes: modes[(number + performer) % modes.count]) {
                        log.note("\(performer) \(number)")
                    }
                }
            }
        }
        for performer in performers { try performer.value() }
        loop.perform { loop.perform { loop.stop() } }
        #expect(try thread.value() == .stopped)
        for performer in 0..<3 {
            let own = log.entries.filter { $0.hasPrefix("\(performer) ") }
            #expect(own == (0..<count).map { "\(performer) \($0)" })
        }
    }

    @Test func `RL-61 each block wakes the loop, also one whose mode does not run`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            log.observe(.afterWaiting, of: loop, in: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        for round in 1...20 {
            try waitFor("the sleep") { loop.isWaiting ? () : nil }
            loop.perform { log.note("in another mode") }
            try waitFor("the wake-up") { log.count(of: "afterWaiting") == round ? () : nil }
        }
        loop.stop()
        #expect(try thread.value() == .stopped)
        #expect(log.count(of: "in another mode") == 0)
    }

    @Test func `a block is released as soon as it has run`() throws {
        final class Token: Sendable {}
        let alive = try onLoopThread { loop -> [Bool] in
            nonisolated(unsafe) var alive: [Bool] = []
            nonisolated(unsafe) weak var first: Token?
            do {
                let token = Token()
                first = token
                loop.perform(inModes: [.work]) { withExtendedLifetime(token) {} }
            }
            alive.append(first != nil)
            loop.perform(inModes: [.work]) { alive.append(first != nil) }
            loop.poll(.work)
            return alive
        }
        #expect(alive == [true, false])
    }

    @Test func `RL-63 a block queued by a block waits for the next block point`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.perform(inModes: [.work]) {
                log.note("first")
                loop.perform(inModes: [.work]) { log.note("third") }
            }
            loop.perform(inModes: [.work]) { log.note("second") }
            loop.addSignalled("source", to: log, mode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["first", "second", "source", "third"])
    }

    @Test func `RL-64 blocks alone do not make run(mode before) return`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .work)
            loop.perform(inModes: [.work]) {
                log.note("first")
                loop.perform(inModes: [.work]) {
                    log.note("second")
                    loop.perform(inModes: [.work]) { source.signal() }
                }
            }
            log.note("\(loop.run(mode: .work, before: .distantFuture))")
            return log.entries
        }
        #expect(entries == ["first", "second", "source", "true"])
    }
}
