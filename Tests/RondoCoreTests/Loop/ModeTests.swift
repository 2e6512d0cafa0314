import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ModeTests {
    @Test func `RL-1 each thread has one loop and always the same`() throws {
        let (first, isSame) = try onLoopThread { loop in
            (loop, RunLoop.current === loop && RunLoop.current === loop)
        }
        #expect(isSame)
        #expect(try onLoopThread { $0 !== first })
    }

    @Test func `RL-3 a loop that is not run serves nothing`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.addDueTimer("timer", to: log)
            loop.addSignalled("source", to: log)
            loop.perform { log.note("block") }
        }
        #expect(log.entries == [])
    }

    @Test func `RL-4 run functions refuse the loop of another thread`() throws {
        let log = EventLog()
        let mayEnd = DispatchSemaphore(value: 0)
        let owner = LoopThread { loop in
            loop.addSignalled("source", to: log)
            log.note("ready")
            mayEnd.wait()
        }
        let loop = try owner.loop
        try waitFor("the source") { log.entries.isEmpty ? nil : () }
        let (ran, date) = try onLoopThread { _ in
            let ran = loop.run(mode: .default, before: .distantFuture)
            loop.acceptInput(forMode: .default, before: .distantFuture)
            return (ran, loop.limitDate(forMode: .default))
        }
        mayEnd.signal()
        try owner.value()
        #expect(!ran)
        #expect(date == nil)
        #expect(log.entries == ["ready"])
    }

    @Test func `RL-4 running a loop for a result on another thread is misuse`() async {
        await #expect(processExitsWith: .failure) {
            let loop = try onLoopThread { $0 }
            try onLoopThread { _ in _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true) }
        }
    }

    @Test func `RL-7 equal strings name the same mode`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.addSignalled("source", to: log, mode: RunLoop.Mode("any " + "name"))
            loop.poll(RunLoop.Mode(["any", "name"].joined(separator: " ")))
        }
        #expect(log.entries == ["source"])
    }

    @Test func `RL-8 only members of the running mode are served`() throws {
        let (during, after) = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            loop.add(Port(), forMode: .work)
            loop.addSignalled("source", to: log, mode: .other)
            loop.addDueTimer("timer", to: log, mode: .other)
            loop.add(pipe.source("descriptor", to: log), forMode: .other)
            log.observe(of: loop, in: .other)
            loop.perform(inModes: [.other]) { log.note("block") }
            for _ in 1...3 { loop.poll(.work) }
            let during = log.entries
            loop.poll(.other)
            return (during, log.entries)
        }
        #expect(during == [])
        // Each of them is ready.
        #expect(
            after.sorted() == [
                "beforeSources", "beforeTimers", "block", "descriptor", "entry", "exit", "source", "timer",
            ])
    }

    @Test func `RL-9 events of another mode are delivered later, not lost`() throws {
        let (before, after) = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .other)
            loop.add(pipe.source("descriptor", to: log), forMode: .other)
            let date = Date(timeIntervalSinceNow: 0.01)
            loop.add(
                Timer(fire: date, interval: 0, repeats: false) { _ in log.note("timer") }, forMode: .other)
            // The other mode has run, so its watchers exist.
            loop.poll(.other)
            loop.addSignalled("work", to: log, mode: .work) {
                source.signal()
                pipe.write()
                spin(until: date)
            }
            for _ in 1...3 { loop.poll(.work) }
            let before = log.entries
            loop.poll(.other)
            return (before, Array(log.entries.dropFirst(before.count)))
        }
        // On a slow machine the timer may have been due in the first poll already.
        #expect(before.filter { $0 != "timer" } == ["work"])
        #expect(Set(after).union(before) == ["work", "source", "timer", "descriptor"])
        #expect(after.contains("source") && after.contains("descriptor"))
    }

    @Test func `RL-10 a mode exists from its first member or block, and stays`() throws {
        let (first, second) = try onLoopThread { loop in
            let first = Set(loop.allModes)
            let port = Port()
            loop.add(port, forMode: .work)
            loop.remove(port, forMode: .work)
            loop.perform(inModes: [.other]) {}
            loop.poll(.inner)
            return (first, Set(loop.allModes))
        }
        #expect(first.contains(.default))
        #expect(second == first.union([.work, .other]))
    }

    @Test func `RL-11 the current mode is that of the innermost activation`() throws {
        let modes = try onLoopThread { loop in
            let log = EventLog()
            let note = { @Sendable in log.note(loop.currentMode?.rawValue ?? "none") }
            note()
            loop.perform(inModes: [.work]) {
                note()
                loop.perform(inModes: [.inner], block: note)
                loop.poll(.inner)
                note()
            }
            loop.poll(.work)
            note()
            return log.entries
        }
        #expect(modes == ["none", "work", "inner", "work", "none"])
    }

    @Test func `RL-12 an empty mode does not run, and observers do not count`() throws {
        let log = EventLog()
        let results = try onLoopThread { loop in
            log.observe(of: loop, in: .work)
            loop.add(Port(), forMode: .other)
            return [
                loop.run(mode: .work, before: .distantFuture),
                loop.run(mode: RunLoop.Mode("never named"), before: .distantFuture),
                loop.runOn(.work) != .finished,
            ]
        }
        #expect(results == [false, false, false])
        #expect(log.entries == [])
    }

    @Test func `RL-12 a mode that was emptied is empty again`() throws {
        let results = try onLoopThread { loop in
            let port = Port()
            let timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }
            loop.add(port, forMode: .work)
            loop.add(timer, forMode: .work)
            let full = loop.run(mode: .work, before: .distantPast)
            loop.remove(port, forMode: .work)
            let half = loop.run(mode: .work, before: .distantPast)
            timer.invalidate()
            return [full, half, loop.run(mode: .work, before: .distantFuture)]
        }
        #expect(results == [true, true, false])
    }

    @Test func `RL-13 a block that may run makes the mode non-empty`() throws {
        let log = EventLog()
        let ran = try onLoopThread { loop in
            loop.perform(inModes: [.work]) { log.note("block") }
            return loop.run(mode: .work, before: .distantPast)
        }
        #expect(ran)
        #expect(log.entries == ["block"])
    }

    @Test func `RL-15 adding a member twice and removing one that is not there do nothing`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source(
                schedule: { _, _ in log.note("schedule") }, cancel: { _, _ in log.note("cancel") },
                perform: { log.note("perform") })
            let observer = RunLoop.Observer(activities: .entry) { _, _ in log.note("entry") }
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { _ in log.note("timer") }
            loop.remove(source, forMode: .work)
            loop.remove(observer, forMode: .work)
            loop.remove(timer, forMode: .work)
            for _ in 1...2 {
                loop.add(source, forMode: .work)
                loop.add(observer, forMode: .work)
                loop.add(timer, forMode: .work)
            }
            source.signal()
            loop.poll(.work)
            loop.remove(source, forMode: .work)
            loop.remove(source, forMode: .work)
            loop.remove(observer, forMode: .work)
            return log.entries + ["\(loop.poll(.work))"]
        }
        #expect(entries == ["schedule", "entry", "perform", "timer", "cancel", "finished"])
    }

    @Test func `RL-16 the loop retains its members, and releases those that have left`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            weak var source: RunLoop.Source?
            weak var timer: Timer?
            weak var observer: RunLoop.Observer?
            weak var watching: RunLoop.Source?
            let pipe = BytePipe()
            autoreleasing {
                source = loop.addSignalled("source", to: log)
                timer = loop.addDueTimer("timer", to: log)
                observer = log.observe(.exit, of: loop, in: .default)
                let descriptor = pipe.source("descriptor", to: log)
                loop.add(descriptor, forMode: .default)
                watching = descriptor
            }
            pipe.write()
            loop.poll()
            if timer != nil { log.note("a timer that has fired is kept") }
            source?.invalidate()
            observer?.invalidate()
            loop.add(Port(), forMode: .default)
            watching.map { loop.remove($0, forMode: .default) }
            // The watcher of a source goes when the mode next runs.
            loop.poll()
            if source != nil { log.note("an invalid source is kept") }
            if observer != nil { log.note("an invalid observer is kept") }
            if watching != nil { log.note("a removed source is kept") }
            return log.entries
        }
        #expect(entries == ["source", "timer", "descriptor", "exit"])
    }

    @Test func `RL-16 a mode that runs in a callback does not retain a source that it does not hold`() throws
    {
        let isReleased = try onLoopThread { loop in
            for mode in [RunLoop.Mode.work, .other] { loop.add(Port(), forMode: mode) }
            // The nested run ends before it looks at descriptors.
            loop.add(RunLoop.Observer(activities: .entry) { _, _ in loop.stop() }, forMode: .other)
            weak var source: RunLoop.Source?
            let pipe = BytePipe()
            pipe.write()
            autoreleasing {
                let descriptor = pipe.source("descriptor", to: EventLog()) { loop.runOn(.other) }
                loop.add(descriptor, forMode: .work)
                loop.poll(.work)
                descriptor.invalidate()
                source = descriptor
            }
            // The watcher goes.
            loop.poll(.work)
            return source == nil
        }
        #expect(isReleased)
    }

    @Test func `RL-17 an item leaves each of its modes separately`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            for mode in [RunLoop.Mode.work, .other] { loop.add(source, forMode: mode) }
            loop.remove(source, forMode: .work)
            source.signal()
            return ["\(loop.poll(.work))", "\(loop.poll(.other))"] + log.entries
        }
        #expect(entries == ["finished", "timedOut", "source"])
    }
}

/// A scope after which nothing made in it is retained.
@inline(never)
private func autoreleasing(_ body: () -> Void) { body() }
