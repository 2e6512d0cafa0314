import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct StopTests {
    @Test func `RL-43 stop ends only the innermost activation`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let last = RunLoop.Source {
                log.note("the outer one goes on")
                loop.stop()
            }
            loop.add(last, forMode: .work)
            loop.add(Port(), forMode: .inner)
            loop.addSignalled("outer", to: log, mode: .work) {
                loop.perform(inModes: [.inner]) { loop.stop() }
                log.note("inner \(loop.runOn(.inner))")
                // Performed in the next pass (rule SRC-4), so only if there is one.
                last.signal()
            }
            log.note("outer \(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == ["outer", "inner stopped", "the outer one goes on", "outer stopped"])
    }

    @Test func `RL-43 stop from another thread ends the nested activation that sleeps`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            loop.add(Port(), forMode: .inner)
            loop.perform(inModes: [.work]) { log.note("inner \(loop.runOn(.inner))") }
            log.note("outer \(loop.runOn(.work))")
        }
        let loop = try thread.loop
        try waitFor("the inner mode") { loop.currentMode == .inner && loop.isWaiting ? () : nil }
        loop.stop()
        try waitFor("the outer mode") { loop.currentMode == .work && loop.isWaiting ? () : nil }
        #expect(log.entries == ["inner stopped"])
        loop.stop()
        try thread.value()
        #expect(log.entries == ["inner stopped", "outer stopped"])
    }

    @Test func `RL-44 stop lets the pass end in order`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.beforeWaiting, .exit], of: loop, in: .work)
            loop.add(Port(), forMode: .work)
            let next = RunLoop.Source { log.note("a second pass") }
            loop.add(next, forMode: .work)
            loop.addSignalled("first", to: log, order: 1, mode: .work) {
                loop.stop()
                next.signal()
                loop.perform(inModes: [.work]) { log.note("block") }
            }
            loop.addSignalled("second", to: log, order: 2, mode: .work)
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == ["first", "second", "block", "exit", "stopped"])
    }

    @Test func `RL-44 a stop makes run(mode before) return true`() throws {
        let ran = try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            loop.perform(inModes: [.work]) { loop.stop() }
            return loop.run(mode: .work, before: .distantFuture)
        }
        #expect(ran)
    }

    @Test func `RL-45 stop from another thread ends a sleeping activation`() throws {
        let (thread, loop) = try loopThreadAsleep()
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `RL-46 stop on a loop that is not running is not remembered`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let second = RunLoop.Source {
                log.note("second pass")
                loop.stop()
            }
            loop.add(second, forMode: .work)
            let first = RunLoop.Source {
                log.note("first pass")
                second.signal()
            }
            loop.add(first, forMode: .work)
            for _ in 1...2 {
                loop.stop()
                first.signal()
                log.note("\(loop.runOn(.work))")
            }
            return log.entries
        }
        #expect(
            entries == ["first pass", "second pass", "stopped", "first pass", "second pass", "stopped"])
    }

    @Test func `RL-47 a stop before a nested run is for the outer one`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            // Two passes, and then the inner mode is empty.
            let sources = SourceList()
            let innerSecond = RunLoop.Source {
                log.note("inner, second pass")
                for source in sources.sources { source.invalidate() }
            }
            loop.add(innerSecond, forMode: .inner)
            sources.append(innerSecond)
            sources.append(
                loop.addSignalled("inner, first pass", to: log, mode: .inner) { innerSecond.signal() })
            let outerSecond = RunLoop.Source { log.note("outer, second pass") }
            loop.add(outerSecond, forMode: .work)
            loop.addSignalled("outer, first pass", to: log, mode: .work) {
                loop.stop()
                log.note("inner \(loop.runOn(.inner))")
                outerSecond.signal()
            }
            log.note("outer \(loop.runOn(.work))")
            return log.entries
        }
        #expect(
            entries == [
                "outer, first pass", "inner, first pass", "inner, second pass", "inner finished",
                "outer stopped",
            ])
    }

    @Test(arguments: [true, false])
    func `RL-48 a stop by an entry observer ends the activation before its first pass`(repeats: Bool) throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            // After an observer that does not repeat there is no observer left.
            if repeats { log.observe(of: loop, in: .work) }
            loop.addSignalled("source", to: log, mode: .work)
            loop.add(
                RunLoop.Observer(activities: .entry, repeats: repeats) { _, _ in loop.stop() }, forMode: .work
            )
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == (repeats ? ["entry", "exit", "stopped"] : ["stopped"]))
    }
}
