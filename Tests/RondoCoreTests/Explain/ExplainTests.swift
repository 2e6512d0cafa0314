import Dispatch
import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ExplainTests {
    /// The members that have `whyNotDelivering`.
    private enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case timer, signalled, descriptor, observer

        var testDescription: String { rawValue }

        func make() -> any Explained {
            switch self {
            case .timer: Timer(timeInterval: 1000, repeats: true) { _ in }
            case .signalled: RunLoop.Source {}
            case .descriptor: BytePipe().source("never ready", to: EventLog())
            case .observer: RunLoop.Observer(activities: .entry) { _, _ in }
            }
        }
    }

    @Test(arguments: Kind.allCases)
    private func `a member says that it is not scheduled, or was invalidated`(_ kind: Kind) throws {
        let item = kind.make()
        #expect(item.whyNotDelivering.reason == .notScheduled)
        #expect(item.whyNotDelivering.description == "in no mode of any run loop: schedule it")
        item.invalidate()
        #expect(item.whyNotDelivering.reason == .invalid)
        #expect(item.whyNotDelivering.description.hasPrefix("it was invalidated"))
    }

    @Test(arguments: Kind.allCases)
    private func `a member says that its loop has never been run, or is not running`(_ kind: Kind) throws {
        let item = kind.make()
        let found = try onLoopThread { loop -> [DeliveryObstacle] in
            item.add(to: loop, .work)
            var found = [item.whyNotDelivering]
            loop.add(Port(), forMode: .other)
            loop.poll(.other)
            found.append(item.whyNotDelivering)
            return found
        }
        try #require(found.map(\.reason) == [.loopNeverRan, .loopNotRunning])
        // A thread without a name of its own has its maker's, on Linux.
        for obstacle in found {
            #expect(obstacle.description.hasPrefix("scheduled in work; its loop"), "\(obstacle)")
        }
        #expect(found[0].description.hasSuffix(" has never been run: run it, in work"), "\(found[0])")
        #expect(found[1].description.contains(" ran in other, and ended "), "\(found[1])")
        #expect(found[1].description.hasSuffix(" s ago: run it, in work"), "\(found[1])")
    }

    @Test func `RL-12 a loop that was run in an empty mode says so, until it is run in another`() throws {
        let observer = RunLoop.Observer(activities: .entry) { _, _ in }
        let timer = Timer(timeInterval: 1000, repeats: false) { _ in }
        let found = try onLoopThread { loop -> [DeliveryObstacle] in
            loop.add(observer, forMode: .work)
            loop.poll(.work)
            var found = [observer.whyNotDelivering]
            loop.add(timer, forMode: .other)
            found.append(timer.whyNotDelivering)
            loop.poll(.other)
            found.append(timer.whyNotDelivering)
            // Nothing was ever added to this mode.
            loop.poll(.inner)
            found.append(timer.whyNotDelivering)
            loop.poll(.work)
            found.append(observer.whyNotDelivering)
            loop.add(timer, forMode: .work)
            found.append(observer.whyNotDelivering)
            return found
        }
        try #require(
            found.map(\.reason)
                == [
                    .loopNeverRan, .loopNeverRan, .loopNotRunning, .loopNotRunning, .loopNotRunning,
                    .loopNotRunning,
                ])
        let ends = [
            " was run in work, found it empty and returned at once: add a source, a timer or a Port first",
            " was run in work, found it empty and returned at once: run it, in other",
            "",
            " was last run in inner, found it empty and returned: run it, in other",
            " was last run in work, found it empty and returned: run it again, with a source, a timer or a Port in that mode",
            " was last run in work, found it empty and returned: run it again, in work",
        ]
        for (obstacle, end) in zip(found, ends) {
            #expect(obstacle.description.hasSuffix(end), "\(obstacle)")
        }
        #expect(!found[2].description.contains("empty"), "\(found[2])")
    }

    @Test(arguments: Kind.allCases)
    private func `a member says that the thread of its loop has ended`(_ kind: Kind) throws {
        let item = kind.make()
        let loop = try onLoopThread { loop in
            item.add(to: loop, .work)
            return loop
        }
        #expect(item.whyNotDelivering.reason == .threadEnded)
        #expect(item.whyNotDelivering.description.hasPrefix("the thread of its loop has ended"))
        // Each member is added to a loop whose thread has ended.
        let late = kind.make()
        late.add(to: loop, .work)
        #expect(late.whyNotDelivering.reason == .threadEnded)
        try onLoopThread { loop in
            item.add(to: loop, .work)
            item.remove(from: loop, .work)
        }
        #expect(item.whyNotDelivering.reason == .notScheduled)
    }

    @Test(arguments: Kind.allCases)
    private func `a member says that its loop is in another mode, in a callback or waiting, with names`(
        _ kind: Kind
    )
        throws
    {
        let thread = RunLoopThread(name: "explained", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let item = kind.make()
        item.add(to: loop, .other)
        try loop.waitUntilAsleep()
        let elsewhere = item.whyNotDelivering
        #expect(elsewhere.reason == .runsInAnotherMode(.work))
        #expect(
            elsewhere.description.hasPrefix(
                "scheduled in other; its loop (thread explained) has been running in work for "),
            "\(elsewhere)")

        let (entered, leave) = (Latch(), Latch())
        item.add(to: loop, .work)
        thread.perform {
            entered.open()
            leave.waitOrRecord()
        }
        try entered.wait()
        let busy = item.whyNotDelivering
        leave.open()
        #expect(busy.reason == .busy)
        #expect(
            busy.description
                == "scheduled in work; its loop (thread explained) runs in work, and is busy with a callback just now"
        )

        // Of two modes, the one that is nearer to a delivery.
        try loop.waitUntilAsleep()
        let waiting = try waitFor("a loop without anything to do") {
            let found = item.whyNotDelivering
            return found.reason == .nothingToDeliver ? found : nil
        }
        let expected =
            kind == .timer
            ? "it is not due: it fires in "
            : "scheduled in work; its loop (thread explained) waits in work: nothing to deliver yet"
        #expect(waiting.description.hasPrefix(expected), "\(waiting)")
        item.invalidate()
    }

    @Test func `an observer without activities says that nothing calls it`() throws {
        let found = try onLoopThread { loop -> DeliveryObstacle in
            let observer = RunLoop.Observer(activities: []) { _, _ in }
            loop.add(observer, forMode: .default)
            return observer.whyNotDelivering
        }
        #expect(found.reason == .waitsForNothing)
        #expect(found.description == "it has no activities: nothing calls it")
    }

    @Test func `RL-18 a loop is not said to be run in the common modes, as none runs in them`() throws {
        let found = try onLoopThread { loop -> String in
            let timer = Timer(timeInterval: 1, repeats: false) { _ in }
            loop.add(timer, forMode: .common)
            return timer.whyNotDelivering.description
        }
        #expect(found.hasSuffix(" has never been run: run it, in one of the common modes, such as default"))
    }

    @Test func `SRC-2 a signalled source whose loop was not woken says so`() throws {
        let thread = RunLoopThread(name: "explained", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let served = Latch()
        let source = RunLoop.Source { served.open() }
        loop.add(source, forMode: .work)
        try loop.waitUntilAsleep()
        // The addition wakes the loop once: it sleeps for good after that.
        let obstacle = try waitFor("a loop that sleeps beside a signal") {
            source.signal()
            let found = source.whyNotDelivering
            return found.reason == .loopNotWoken ? found : nil
        }
        #expect(
            obstacle.description
                == "signalled, but its loop sleeps and was not woken: call wakeUp() of the loop")
        loop.wakeUp()
        try served.wait()
        source.invalidate()
    }

    @Test func `a descriptor source without interest waits for nothing`() throws {
        let thread = RunLoopThread(name: "explained", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let source = BytePipe().source("never ready", to: EventLog())
        source.interest = []
        loop.add(source, forMode: .work)
        try waitFor("a loop that sleeps beside a source without interest") {
            source.whyNotDelivering.reason == .waitsForNothing ? () : nil
        }
        #expect(
            source.whyNotDelivering.description
                == "its interest is empty: it is served neither for reading nor for writing")
        source.invalidate()
    }

    @Test func `the default, common and tracking modes are called by their short names`() throws {
        let loop = try onLoopThread { $0 }
        #expect(loop.obstacle(inMode: .default).description.hasPrefix("scheduled in default;"))
        #expect(loop.obstacle(inMode: .common).description.hasPrefix("scheduled in the common modes;"))
        #expect(loop.obstacle(inMode: .tracking).description.hasPrefix("scheduled in tracking;"))
        #expect(loop.obstacle(inMode: .default).reason == .threadEnded)
    }

    @Test func `debugDescription shows thread, modes and members`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let source = RunLoop.Source(order: 7) {}
            source.label = "download"
            source.signal()
            let timer = Timer(timeInterval: 1000, repeats: true) { _ in }
            timer.label = "heartbeat"
            let observer = RunLoop.Observer(activities: [.entry, .beforeWaiting], order: 3) { _, _ in }
            let pipe = BytePipe()
            let descriptor = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: [.read, .write]) { _, _ in
            }
            for mode in [RunLoop.Mode.work] {
                loop.add(source, forMode: mode)
                loop.add(timer, forMode: mode)
                loop.add(observer, forMode: mode)
            }
            loop.add(descriptor, forMode: .other)
            loop.perform(inModes: [.other]) {}
            log.note(
                loop.debugDescription.replacing("descriptor \(pipe.readEnd),", with: "descriptor #,"))
            // Asked in the middle of a nested run.
            loop.perform(inModes: [.work]) {
                loop.perform(inModes: [.inner]) { log.note(loop.debugDescription) }
                loop.poll(.inner)
            }
            source.invalidate()
            loop.poll(.work)
            descriptor.invalidate()
        }
        try #require(log.entries.count == 2)
        var lines = log.entries[0].split(separator: "\n").map(String.init)
        // A thread without a name of its own has its maker's, on Linux.
        let first = lines.removeFirst()
        #expect(first.hasPrefix("RunLoop of thread ") && first.hasSuffix(", not running"), "\(first)")
        let timer = lines.firstIndex { $0.contains("heartbeat") }.map { lines.remove(at: $0) } ?? "no timer"
        #expect(
            timer.hasPrefix("    timer “heartbeat”, due in 999.") || timer.contains("due in 1000.000"),
            "\(timer)")
        #expect(timer.hasSuffix(" s, every 1,000 s"), "\(timer)")
        #expect(
            lines == [
                "  default (common)",
                "  tracking (common)",
                "  work",
                "    source “download”, signalled by hand, order 7, signalled",
                "    observer, order 3, activities entry beforeWaiting",
                "  other",
                "    source, descriptor #, reading and writing",
                "    blocks",
            ], "\(log.entries[0])")
        #expect(log.entries[1].contains(", running in work > inner\n"), "\(log.entries[1])")
    }

    @Test func `debugDescription calls timers overdue and parked`() throws {
        let text = try onLoopThread { loop -> String in
            for (label, date) in [("late", Date(timeIntervalSinceNow: -2)), ("parked", Date.distantFuture)] {
                let timer = Timer(timeInterval: 1000, repeats: true) { _ in }
                timer.label = label
                timer.fireDate = date
                loop.add(timer, forMode: .work)
            }
            return loop.debugDescription
        }
        #expect(text.contains("timer “late”, overdue by "), "\(text)")
        #expect(text.contains("timer “parked”, parked, every 1,000 s"), "\(text)")
    }

    @Test func `a timer whose callback runs its mode again is overdue meanwhile`() throws {
        let (obstacle, begun, ended) = (Box<DeliveryObstacle?>(nil), Latch(), Latch())
        let timer = Timer(timeInterval: 0.001, repeats: false) { _ in
            RunLoop.current.add(Port(), forMode: .work)
            begun.open()
            _ = RunLoop.current.run(in: .work, for: testPatience, returnAfterSourceHandled: false)
            ended.open()
        }
        let thread = RunLoopThread(name: "nested", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        loop.add(timer, forMode: .work)
        try begun.wait()
        try waitFor("the nested run that sleeps") {
            obstacle.value = timer.whyNotDelivering
            return obstacle.value?.description.hasPrefix("it is overdue by ") == true ? () : nil
        }
        #expect(obstacle.value?.reason == .nothingToDeliver)
        loop.stop()
        try ended.wait()
    }

    @Test(arguments: [Kind.descriptor, .observer])
    private func `SRC-23 SRC-26 a member whose callback runs its mode again says so`(_ kind: Kind) throws {
        let (begun, ended, pipe) = (Latch(), Latch(), BytePipe())
        let runAgain: @Sendable () -> Void = {
            RunLoop.current.add(Port(), forMode: .work)
            begun.open()
            _ = RunLoop.current.run(in: .work, for: testPatience, returnAfterSourceHandled: false)
            ended.open()
        }
        let item: any Explained =
            if kind == .descriptor {
                pipe.source("ready", to: EventLog(), then: runAgain)
            } else {
                RunLoop.Observer(activities: .beforeWaiting, repeats: false) { _, _ in runAgain() }
            }
        let thread = RunLoopThread(name: "nested", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        pipe.write()
        item.add(to: loop, .work)
        loop.wakeUp()
        try begun.wait()
        let sentence = "its callback has not returned: it is not called again in a run nested in it"
        let obstacle = try waitFor("the nested run that sleeps") {
            let found = item.whyNotDelivering
            return found.description == sentence ? found : nil
        }
        #expect(obstacle.reason == .busy)
        if let source = item as? RunLoop.Source {
            // As with a `CFSocket`, which is watched for nothing while its callback runs.
            source.interest = []
            try waitFor("the loop that sleeps again") {
                source.whyNotDelivering.description == sentence ? () : nil
            }
            source.interest = .read
        }
        loop.stop()
        try ended.wait()
        if kind == .descriptor {
            try waitFor("the outer run that sleeps") {
                item.whyNotDelivering.reason == .nothingToDeliver ? () : nil
            }
        }
        item.invalidate()
    }

    @Test func `a timer that is parked says so`() throws {
        let thread = RunLoopThread(name: "explained", mode: .work)
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let timer = Timer(timeInterval: 1000, repeats: true) { _ in }
        timer.fireDate = .distantFuture
        loop.add(timer, forMode: .work)
        let obstacle = try waitFor("a loop that sleeps beside a parked timer") {
            let found = timer.whyNotDelivering
            return found.reason == .nothingToDeliver ? found : nil
        }
        #expect(obstacle.description == "it is parked: its date is in the distant future")
        timer.invalidate()
    }

    @Test func `debugDescription says that a loop is waiting`() throws {
        let thread = RunLoopThread(name: "described", mode: .work)
        let loop = thread.start()
        try waitFor("the description of a sleeping loop") {
            loop.debugDescription.hasPrefix("RunLoop of thread described, running in work, waiting\n")
                ? () : nil
        }
        thread.stop()
        thread.join()
    }

    @Test func `the common name is named, and not one of its modes`() throws {
        let timer = Timer(timeInterval: 1000, repeats: false) { _ in }
        let source = RunLoop.Source {}
        let sentences = try onLoopThread { loop -> [String] in
            loop.add(timer, forMode: .common)
            loop.add(source, forMode: .common)
            let observer = RunLoop.Observer(activities: .entry) { _, _ in }
            loop.add(observer, forMode: .common)
            loop.add(Port(), forMode: .work)
            loop.poll(.work)
            return [
                timer.whyNotDelivering.description, source.whyNotDelivering.description,
                observer.whyNotDelivering.description,
            ]
        }
        for sentence in sentences {
            #expect(sentence.hasPrefix("scheduled in the common modes;"), "\(sentence)")
        }
    }

    @Test(arguments: Kind.allCases)
    private func `RL-25 a common member that is in a further mode, or has left one, tells of its real modes`(
        _ kind: Kind
    )
        throws
    {
        let (item, log) = (kind.make(), EventLog())
        try onLoopThread { loop in
            let ask: @Sendable () -> Void = {
                let obstacle = item.whyNotDelivering
                log.note("\(obstacle.reason) \(obstacle.description.prefix { $0 != ";" })")
            }
            item.add(to: loop, .common)
            item.add(to: loop, .work)
            loop.perform(inModes: [.work]) { ask() }
            loop.poll(.work)
            item.remove(from: loop, .work)
            item.remove(from: loop, .default)
            loop.perform { ask() }
            loop.poll()
            item.remove(from: loop, .tracking)
            ask()
            item.invalidate()
        }
        #expect(
            log.entries == [
                "busy scheduled in work", "runsInAnotherMode(default) scheduled in tracking",
                "notScheduled in no mode of any run loop: schedule it",
            ])
    }
}

private protocol Explained: Sendable {
    var whyNotDelivering: DeliveryObstacle { get }
    func add(to loop: RunLoop, _ mode: RunLoop.Mode)
    func remove(from loop: RunLoop, _ mode: RunLoop.Mode)
    func invalidate()
}

extension Timer: Explained {
    fileprivate func add(to loop: RunLoop, _ mode: RunLoop.Mode) { loop.add(self, forMode: mode) }
    fileprivate func remove(from loop: RunLoop, _ mode: RunLoop.Mode) { loop.remove(self, forMode: mode) }
}

extension RunLoop.Source: Explained {
    fileprivate func add(to loop: RunLoop, _ mode: RunLoop.Mode) { loop.add(self, forMode: mode) }
    fileprivate func remove(from loop: RunLoop, _ mode: RunLoop.Mode) { loop.remove(self, forMode: mode) }
}

extension RunLoop.Observer: Explained {
    fileprivate func add(to loop: RunLoop, _ mode: RunLoop.Mode) { loop.add(self, forMode: mode) }
    fileprivate func remove(from loop: RunLoop, _ mode: RunLoop.Mode) { loop.remove(self, forMode: mode) }
}
