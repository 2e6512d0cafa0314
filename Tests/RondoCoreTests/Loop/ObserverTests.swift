import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ObserverTests {
    @Test func `SRC-18 an observer is called for each activity of its mask, with that activity alone`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.entry, .beforeSources, .exit], of: loop, in: .work)
            loop.addSignalled("source", to: log, mode: .work)
            loop.add(Port(), forMode: .other)
            loop.poll(.other)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["entry", "beforeSources", "source", "exit"])
    }

    @Test func `SRC-18 the raw values are those of Core Foundation`() {
        let values = [
            RunLoop.Activity.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit,
            .allActivities,
        ].map(\.rawValue)
        #expect(values == [1, 2, 4, 32, 64, 128, 0x0FFF_FFFF])
    }

    @Test func `modes are printed by their short names`() {
        #expect(
            [RunLoop.Mode.default, .tracking, .work].map(\.shortName) == ["default", "tracking", "work"])
        let reason = DeliveryObstacle.Reason.runsInAnotherMode(.default)
        #expect("\(reason)".hasSuffix("(default)"))
    }

    @Test func `SRC-19 observers are called by order, equal ones in order of addition`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            for (name, order) in [("c", 2), ("b1", 0), ("a", -1), ("b2", 0), ("d", 3), ("b3", 0)] {
                loop.add(
                    RunLoop.Observer(activities: .entry, order: order) { _, _ in log.note(name) },
                    forMode: .work)
            }
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["a", "b1", "b2", "b3", "c", "d"])
    }

    @Test func `SRC-20 an observer that does not repeat is invalid after its first call`() throws {
        let (entries, isValid) = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let observer = RunLoop.Observer(activities: .allActivities, repeats: false) { _, activity in
                log.note(activity.name)
            }
            loop.add(observer, forMode: .work)
            loop.poll(.work)
            loop.poll(.work)
            return (log.entries, observer.isValid)
        }
        #expect(entries == ["entry"])
        #expect(!isValid)
    }

    @Test func `SRC-19 SRC-20 thousands of one-shot observers are called once each, by order`() throws {
        let count = 2000
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let observers = (0..<count).map { number in
                // Three orders, in turn.
                RunLoop.Observer(activities: .entry, repeats: false, order: number % 3) { _, _ in
                    log.note("\(number)")
                }
            }
            for observer in observers { loop.add(observer, forMode: .work) }
            // The last of its order, and one between others.
            observers[count - 1].invalidate()
            loop.remove(observers[1000], forMode: .work)
            loop.poll(.work)
            loop.poll(.work)
            return log.entries
        }
        let called = (0..<(count - 1)).filter { $0 != 1000 }
        let expected = (0..<3).flatMap { order in called.filter { $0 % 3 == order } }
        #expect(entries == expected.map { "\($0)" })
    }

    @Test(arguments: [RunLoop.Activity.entry, .beforeTimers, .beforeSources])
    func `RL-52 SRC-20 a source that a one-shot observer signals is served in the same pass`(
        activity: RunLoop.Activity
    ) throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .work)
            loop.add(
                RunLoop.Observer(activities: activity, repeats: false) { _, _ in source.signal() },
                forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["source"])
    }

    @Test func `SRC-21 an observer belongs to one loop, and to any number of its modes`() throws {
        let log = EventLog()
        let observer = RunLoop.Observer(activities: .entry) { _, _ in log.note("entry") }
        try onLoopThread { loop in
            for mode in [RunLoop.Mode.work, .other] {
                loop.add(Port(), forMode: mode)
                loop.add(observer, forMode: mode)
                loop.poll(mode)
            }
            log.note("second loop")
            _ = try? onLoopThread { second in
                second.add(observer, forMode: .work)
                second.add(observer, forMode: .common)
                second.add(Port(), forMode: .work)
                second.add(Port(), forMode: .default)
                second.poll(.work)
                second.poll()
                log.note("\(second.contains(observer, forMode: .common))")
            }
        }
        #expect(log.entries == ["entry", "entry", "second loop", "false"])
    }

    @Test func `SRC-22 an invalid observer is never called again`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .default)
            loop.add(Port(), forMode: .work)
            let observer = log.observe(.entry, of: loop, in: .common)
            loop.add(observer, forMode: .work)
            loop.poll()
            loop.poll(.work)
            observer.invalidate()
            loop.add(observer, forMode: .work)
            loop.poll()
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["entry", "entry"])
    }

    @Test func `SRC-22 activities of other observers stay observed when an observer leaves`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            loop.add(Port(), forMode: .other)
            func observer(_ name: String, _ activities: RunLoop.Activity) -> RunLoop.Observer {
                RunLoop.Observer(activities: activities) { _, activity in log.note("\(name) \(activity)") }
            }
            let observers = [
                observer("a", [.entry, .exit]), observer("b", .entry), observer("c", .exit),
            ]
            for observer in observers[0...1] { loop.add(observer, forMode: .work) }
            for observer in [observers[0], observers[2]] { loop.add(observer, forMode: .other) }
            loop.remove(observers[0], forMode: .work)
            for observer in observers {
                loop.poll(.work)
                loop.poll(.other)
                log.note("-")
                observer.invalidate()
            }
            loop.poll(.work)
            loop.poll(.other)
            return log.entries
        }
        let (first, second) = (["b entry", "a entry", "a exit", "c exit", "-"], ["b entry", "c exit", "-"])
        #expect(entries == first + second + ["c exit", "-"])
    }

    @Test func `SRC-23 an observer is not re-entered, others see the nested run`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            loop.add(
                RunLoop.Observer(activities: [.entry, .beforeTimers], order: 1) { _, activity in
                    log.note("own \(activity.name)")
                    if activity == .entry { loop.poll(.work) }
                }, forMode: .work)
            loop.add(
                RunLoop.Observer(activities: .entry, order: 2) { _, _ in log.note("other") }, forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["own entry", "other", "other", "own beforeTimers"])
    }

    @Test func `SRC-24 observers keep no mode alive`() throws {
        let result = try onLoopThread { loop in
            let log = EventLog()
            log.observe(of: loop, in: .work)
            loop.perform(inModes: [.work]) { loop.wakeUp() }
            return loop.runOn(.work)
        }
        #expect(result == .finished)
    }

    @Test func `SRC-25 a common observer is called in every common mode`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.entry, of: loop, in: .common)
            for mode in [RunLoop.Mode.default, .tracking, .work] {
                loop.add(Port(), forMode: mode)
                loop.poll(mode)
                log.note(mode.rawValue)
            }
            return log.entries
        }
        #expect(
            entries == [
                "entry", RunLoop.Mode.default.rawValue, "entry", RunLoop.Mode.tracking.rawValue, "work",
            ])
    }

    @Test func `activities are described by their names`() {
        let activities: RunLoop.Activity = [.entry, .beforeWaiting, .exit]
        #expect("\(activities)" == "entry beforeWaiting exit")
        #expect(
            "\(RunLoop.Activity.allActivities)"
                == "entry beforeTimers beforeSources beforeWaiting afterWaiting exit")
        #expect("\([] as RunLoop.Activity)" == "none")
        #expect("\(RunLoop.Activity(rawValue: 0x18))" == "0x18")
        #expect("\(RunLoop.Activity(rawValue: 0x21))" == "entry beforeWaiting")
        #expect("\(RunLoop.Activity(rawValue: 0x29))" == "entry beforeWaiting 0x8")
    }
}
