import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct OrderTests {
    @Test
    func `RL-52 an activation calls timers, sources, blocks and observers in the documented order`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(of: loop, in: .work)
            loop.perform(inModes: [.work]) { log.note("block") }
            loop.addSignalled("source", to: log, mode: .work) {
                loop.perform(inModes: [.work]) { log.note("block of the source") }
            }
            loop.addDueTimer("timer", to: log, mode: .work) {
                loop.perform(inModes: [.work]) { log.note("block of the timer") }
                loop.stop()
            }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(
            entries == [
                "entry", "beforeTimers", "beforeSources", "block", "source", "block of the source", "timer",
                "block of the timer", "exit", "stopped",
            ])
    }

    @Test func `RL-52 closures for the start of a pass, and notifications, have their places`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let posts = Posts(log)
            posts.whenPosted = { name in if name == "idle" { loop.stop() } }
            log.observe(of: loop, in: .work)
            let leaving = RunLoop.Observer(activities: .exit) { _, _ in
                posts.enqueue("enqueued at the exit", .asap, modes: [.work])
            }
            loop.add(leaving, forMode: .work)
            loop.add(Port(), forMode: .work)
            posts.enqueue("idle", .whenIdle, modes: [.work])
            loop.perform(inModes: [.work]) {
                log.note("block")
                posts.enqueue("soon", .asap, modes: [.work])
            }
            loop.perform(order: 0, modes: [.work], target: log) { $0.note("start of a pass") }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(
            entries == [
                "entry", "beforeTimers", "beforeSources", "start of a pass", "block", "soon", "beforeTimers",
                "beforeSources", "beforeWaiting", "idle", "afterWaiting", "exit", "enqueued at the exit",
                "stopped",
            ])
    }

    @Test func `RL-52 a pass that may sleep sends beforeWaiting and afterWaiting before it serves an event`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            log.observe(of: loop, in: .work)
            loop.add(pipe.source("descriptor", to: log) { loop.stop() }, forMode: .work)
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(
            entries == [
                "entry", "beforeTimers", "beforeSources", "beforeWaiting", "afterWaiting", "descriptor",
                "exit",
                "stopped",
            ])
    }

    @Test func `RL-52 kinds that are always ready take turns`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let note = { @Sendable (event: String) in
                log.note(event)
                spin(until: LoopClock.now.advanced(bySeconds: 0.0003))
                if log.entries.count >= 30 { loop.stop() }
            }
            // While one of the two timers is called, the other becomes due: one is always due.
            for _ in 1...2 {
                loop.add(
                    Timer(fire: .distantPast, interval: 0.0001, repeats: true) { _ in note("timer") },
                    forMode: .work)
            }
            let pipe = BytePipe()
            pipe.write()
            loop.add(
                RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { _, _ in note("descriptor") },
                forMode: .work)
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries.first == "timer")
        // After a batch of at most two timers it is the descriptor's turn, and the other way round.
        let turns = entries.split(separator: "descriptor", omittingEmptySubsequences: false)
        #expect(turns.allSatisfy { $0.count <= 2 })
        #expect(turns.dropLast().allSatisfy { !$0.isEmpty })
    }

    @Test func `RL-53 entry and exit come once for each activation`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.entry, .exit], of: loop, in: .work)
            log.observe([.entry, .exit], of: loop, in: .inner)
            loop.add(Port(), forMode: .work)
            loop.perform(inModes: [.work]) {
                log.note("nested")
                log.note("\(loop.poll(.inner))")
                loop.add(Port(), forMode: .inner)
                log.note("\(loop.poll(.inner))")
            }
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["entry", "nested", "finished", "entry", "exit", "timedOut", "exit"])
    }

    @Test func `RL-54 beforeTimers and beforeSources come in every pass`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.beforeTimers, .beforeSources], of: loop, in: .work)
            let second = RunLoop.Source {
                log.note("second")
                loop.stop()
            }
            loop.add(second, forMode: .work)
            loop.addSignalled("first", to: log, mode: .work) { second.signal() }
            loop.runOn(.work)
            return log.entries
        }
        #expect(
            entries == ["beforeTimers", "beforeSources", "first", "beforeTimers", "beforeSources", "second"])
    }

    @Test func `RL-55 beforeWaiting and afterWaiting come in pairs, and not where nothing may sleep`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.beforeWaiting, .afterWaiting], of: loop, in: .work)
            loop.add(Port(), forMode: .work)
            loop.poll(.work)
            loop.addSignalled("source", to: log, mode: .work) { loop.stop() }
            loop.runOn(.work)
            _ = loop.run(in: .work, for: 0.001, returnAfterSourceHandled: false)
            return log.entries
        }
        #expect(entries.prefix(3) == ["source", "beforeWaiting", "afterWaiting"])
        #expect(entries.count % 2 == 1)
    }

    @Test func `RL-56 a pass that performed a source still takes one ready event`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            log.observe([.beforeWaiting, .beforeTimers], of: loop, in: .work)
            loop.addSignalled("source", to: log, mode: .work)
            loop.add(pipe.source("descriptor", to: log), forMode: .work)
            log.note("\(loop.run(in: .work, for: 60, returnAfterSourceHandled: true))")
            return log.entries
        }
        #expect(entries == ["beforeTimers", "source", "descriptor", "handledSource"])
    }

    @Test func `RL-57 ready descriptors are served one a pass, with observers, none lost`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.beforeTimers, .beforeWaiting, .afterWaiting], of: loop, in: .work)
            let pipes = (1...3).map { _ in BytePipe() }
            for pipe in pipes {
                pipe.write()
                loop.add(
                    pipe.source("descriptor", to: log) {
                        if log.count(of: "descriptor") == 3 { loop.stop() }
                    },
                    forMode: .work)
            }
            loop.runOn(.work)
            return log.entries
        }
        let pass = ["beforeTimers", "beforeWaiting", "afterWaiting", "descriptor"]
        #expect(entries == pass + pass + pass)
    }

    @Test func `RL-57 sources that are always ready are served in turns, over activations too`() throws {
        let counts = try onLoopThread { loop in
            let log = EventLog()
            let pipes = (0..<4).map { _ in BytePipe() }
            for (place, pipe) in pipes.enumerated() {
                pipe.write()
                let name = "\(place)"
                loop.add(
                    RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { _, _ in log.note(name) },
                    forMode: .work)
            }
            for _ in 1...40 { loop.run(mode: .work, before: .distantFuture) }
            return (0..<4).map { log.count(of: "\($0)") }
        }
        #expect(counts == [10, 10, 10, 10])
    }

    @Test func `RL-57 a descriptor that a nested run in another mode has emptied is not served again`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipes = (1...2).map { _ in BytePipe() }
            for (pipe, name) in zip(pipes, ["first", "second"]) {
                pipe.write()
                let source = pipe.source(name, to: log) { loop.poll(.other) }
                loop.add(source, forMode: .work)
                loop.add(source, forMode: .other)
            }
            for _ in 1...3 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries.sorted() == ["first", "second"])
    }
}
