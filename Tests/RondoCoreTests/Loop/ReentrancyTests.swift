import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ReentrancyTests {
    @Test func `RL-65 everything is allowed inside every kind of callback`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let everything = { @Sendable (name: String) in
                log.note(name)
                let source = RunLoop.Source(schedule: { _, _ in }, cancel: { _, _ in }, perform: {})
                let timer = Timer(fire: .distantPast, interval: 0, repeats: false) { _ in }
                let observer = RunLoop.Observer(activities: .allActivities) { _, _ in }
                for mode in [RunLoop.Mode.work, .inner, .common] {
                    loop.add(source, forMode: mode)
                    loop.add(timer, forMode: mode)
                    loop.add(observer, forMode: mode)
                }
                source.signal()
                loop.wakeUp()
                loop.perform(inModes: [.inner]) {}
                loop.poll(.inner)
                loop.remove(source, forMode: .work)
                source.invalidate()
                timer.invalidate()
                observer.invalidate()
                _ = loop.debugDescription
            }
            let pipe = BytePipe()
            pipe.write()
            let source = RunLoop.Source(
                schedule: { _, _ in everything("schedule") }, cancel: { _, _ in everything("cancel") },
                perform: { everything("source") })
            loop.add(source, forMode: .work)
            source.signal()
            loop.add(pipe.source("descriptor", to: log) { everything("in it") }, forMode: .work)
            loop.addDueTimer("timer", to: log, mode: .work) { everything("in it") }
            loop.perform(inModes: [.work]) { everything("block") }
            loop.add(RunLoop.Observer(activities: .entry) { _, _ in everything("entry") }, forMode: .work)
            loop.poll(.work)
            loop.add(Port(), forMode: .work)
            loop.poll(.work)
            loop.remove(source, forMode: .work)
            return log.entries
        }
        #expect(entries.first == "schedule")
        for name in ["entry", "block", "source", "timer", "in it", "cancel"] {
            #expect(entries.contains(name))
        }
    }

    @Test func `RL-66 a member that is invalidated before it is called is not called`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = loop.addSignalled("second source", to: log, order: 2, mode: .work)
            loop.addSignalled("first source", to: log, order: 1, mode: .work) { source.invalidate() }
            let timer = loop.addDueTimer("second timer", to: log, mode: .work, ago: 1)
            loop.addDueTimer("first timer", to: log, mode: .work, ago: 2) { timer.invalidate() }
            let observer = RunLoop.Observer(activities: .exit, order: 2) { _, _ in log.note("second observer")
            }
            loop.add(observer, forMode: .work)
            loop.add(
                RunLoop.Observer(activities: .exit, order: 1) { _, _ in
                    log.note("first observer")
                    observer.invalidate()
                }, forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["first source", "first timer", "first observer"])
    }

    @Test func `RL-66 a descriptor source invalidated by another callback of the same look is not called`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipes = (1...4).map { _ in BytePipe() }
            let all = SourceList()
            for pipe in pipes {
                pipe.write()
                // Whichever comes first invalidates all others.
                let source = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { source, _ in
                    log.note("descriptor")
                    pipe.drain()
                    for other in all.sources where other != source { other.invalidate() }
                }
                all.append(source)
                loop.add(source, forMode: .work)
            }
            for _ in 1...6 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries == ["descriptor"])
    }

    @Test func `RL-67 a member that is added during a batch is not part of it`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let late = RunLoop.Observer(activities: .beforeTimers) { _, _ in log.note("late observer") }
            loop.add(
                RunLoop.Observer(activities: .beforeTimers) { _, _ in
                    log.note("observer")
                    loop.add(late, forMode: .work)
                }, forMode: .work)
            loop.addSignalled("source", to: log, mode: .work) {
                loop.addSignalled("late source", to: log, order: 9, mode: .work)
            }
            loop.addDueTimer("timer", to: log, mode: .work) {
                loop.addDueTimer("late timer", to: log, mode: .work, ago: 0.5)
            }
            loop.poll(.work)
            loop.poll(.work)
            return log.entries
        }
        #expect(
            entries == [
                "observer", "source", "timer", "observer", "late observer", "late source", "late timer",
            ])
    }

    @Test func `RL-68 a source or observer that is removed, not invalidated, is still called in its batch`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let source = loop.addSignalled("second source", to: log, order: 2, mode: .work)
            loop.addSignalled("first source", to: log, order: 1, mode: .work) {
                loop.remove(source, forMode: .work)
            }
            let observer = RunLoop.Observer(activities: .exit, order: 2) { _, _ in log.note("second observer")
            }
            loop.add(observer, forMode: .work)
            loop.add(
                RunLoop.Observer(activities: .exit, order: 1) { _, _ in
                    log.note("first observer")
                    loop.remove(observer, forMode: .work)
                }, forMode: .work)
            loop.poll(.work)
            source.signal()
            loop.poll(.work)
            return log.entries
        }
        #expect(
            entries == [
                "first source", "second source", "first observer", "second observer", "first observer",
            ])
    }

    @Test func `RL-69 adding to a sleeping loop from another thread takes effect at once`() throws {
        let log = EventLog()
        let (thread, loop) = try loopThreadAsleep()
        let pipe = BytePipe()
        pipe.write()
        loop.add(pipe.source("descriptor", to: log), forMode: .work)
        try waitFor("the descriptor") { log.entries == ["descriptor"] ? () : nil }
        try loop.waitUntilAsleep()
        loop.addSignalled("source", to: log, mode: .work)
        try waitFor("the source") { log.entries == ["descriptor", "source"] ? () : nil }
        loop.stop()
        #expect(try thread.value() == .stopped)
    }
}
