import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

/// There is one instrument for the process: the tests run one at a time, and look at events of their own loop
/// only.
@Suite(.serialized, .leavesNothing) struct TraceTests {
    @Test func `an instrument receives entry, call-outs with label and depth, and exit`() throws {
        let events = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let descriptor = pipe.source("descriptor", to: log)
            descriptor.label = "d"
            let observer = RunLoop.Observer(activities: .beforeSources) { _, _ in }
            observer.label = "o"
            loop.add(observer, forMode: .work)
            loop.add(descriptor, forMode: .work)
            loop.addSignalled("source", to: log, mode: .work).label = "s"
            let timer = loop.addDueTimer("timer", to: log, mode: .work) {
                loop.perform(inModes: [.inner]) {}
                loop.poll(.inner)
            }
            timer.label = "t"
            loop.perform(inModes: [.work]) {}
            pipe.write()
            // The watcher is made before.
            return Recorder.record(loop) { loop.poll(.work) }.map(\.summary)
        }
        #expect(
            events == [
                "work 1 entry", "work 1 observer beforeSources o", "work 1 block", "work 1 signalled s",
                "inner 2 entry", "inner 2 block", "inner 2 exit timedOut", "work 1 timer t",
                "work 1 descriptor read d", "work 1 exit timedOut",
            ])
    }

    @Test func `an instrument receives how each run ended, and nothing of a run that could not start`() throws
    {
        let events = try onLoopThread { loop in
            Recorder.record(loop) {
                loop.poll(.work)
                loop.addSignalled("source", to: EventLog(), mode: .work)
                _ = loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
                loop.perform(inModes: [.work]) { loop.stop() }
                loop.runOn(.work)
                loop.addDueTimer("timer", to: EventLog(), mode: .other)
                loop.runOn(.other)
            }.map(\.summary).filter { $0.contains("exit") }
        }
        #expect(events == ["work 1 exit handledSource", "work 1 exit stopped", "other 1 exit finished"])
    }

    @Test func `an instrument receives notifications of a queue, and that they were enqueued`() throws {
        let events = try onLoopThread { loop in
            let posts = Posts()
            posts.queue.label = "q"
            return Recorder.recordAll(loop) {
                loop.perform(inModes: [.work]) { posts.enqueue("n", .asap, modes: [.work]) }
                loop.poll(.work)
            }
        }
        #expect(events.map(\.summary).contains("work 1 notification n q"))
        let enqueued = try #require(events.first { $0.kind == .enqueue })
        #expect(enqueued.label == "n" && enqueued.isRequest && enqueued.mode == .work)
        let posted = try #require(events.first { $0.kind == .notification })
        #expect(posted.method == "n" && posted.label == "q" && posted.isCallOut)
    }

    @Test func `notifications of modes that do not run are held back`() throws {
        try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("n", .asap, modes: [.work])
            #expect(loop.heldBackInWords == ["notification several "])
        }
    }

    private actor Lodger {
        nonisolated let executor: RunLoop.ModeExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        init(_ loop: RunLoop) { executor = loop.executor(in: .work) }
        func work() {}
    }

    @Test func `an actor's jobs have a label of their own, while they wait and when they run`() throws {
        let (held, events) = try onLoopThread { loop in
            let lodger = Lodger(loop)
            Task { await lodger.work() }
            var held = loop.heldBackInWords
            while held.count < 2 {
                loop.poll(.other)  // until the task has begun, on a thread of its own
                held = loop.heldBackInWords
            }
            return (held, Recorder.record(loop) { loop.poll(.work) }.map(\.summary))
        }
        let name = RunLoop.Mode.work.shortName
        #expect(held == ["block ", "block actors in \(name)"])
        #expect(events.prefix(3) == ["work 1 entry", "work 1 block actors in \(name)", "work 1 block"])
    }

    private final class Work: DeferredWork {
        func performDeferredWork() -> Bool { false }
    }

    @Test func `an instrument receives deferred work when it is done`() throws {
        let events = try onLoopThread { loop in
            loop.addSignalled("source", to: EventLog(), mode: .work) {
                for _ in 1...3 { #expect(loop.deferWork(Work())) }
                loop.stop()
            }
            return Recorder.record(loop) { loop.runOn(.work) }.map(\.summary)
        }
        #expect(
            events == ["work 1 entry", "work 1 signalled", "work 1 deferred work 3", "work 1 exit stopped"])
    }

    @Test func `events of waits and call-outs have their length`() throws {
        let (events, begin, end) = try onLoopThread { loop -> ([RunLoopEvent], Int64, Int64) in
            let begin = LoopClock.now
            let events = Recorder.record(loop) {
                // Made here, since it may take a while until the instrument is set.
                let timer = Timer(timeInterval: 0.05, repeats: false) { _ in
                    spin(until: LoopClock.now.advanced(bySeconds: 0.01))
                }
                loop.add(timer, forMode: .work)
                loop.runOn(.work)
            }
            return (events, begin.nanoseconds, LoopClock.now.nanoseconds)
        }
        #expect(
            events.map(\.summary) == ["work 1 entry", "work 1 wait", "work 1 timer", "work 1 exit finished"])
        for event in events { #expect((begin...end).contains(event.began), "\(event)") }
        guard events.count == 4, case .wait(let slept) = events[1].detail,
            case .callOut(.timer, _, let took) = events[2].detail
        else { return }
        // At most the time of the test, and at least that of the callback and most of the wait.
        #expect(slept > 0 && slept < end - begin, "\(slept)")
        #expect(took >= 10_000_000 && took < end - begin, "\(took)")
    }

    @Test func `requests are reported on the thread that makes them, and passes as they end`() throws {
        let events = try onLoopThread { loop -> [RunLoopEvent] in
            let source = RunLoop.Source {}
            source.label = "s"
            let timer = Timer(timeInterval: 0, repeats: false) { _ in }
            timer.label = "t"
            return Recorder.recordAll(loop) {
                loop.add(source, forMode: .work)
                loop.add(timer, forMode: .work)
                source.signal()
                // A second signal before the source is served is no new request.
                source.signal()
                loop.stop()
                loop.poll(.work)
                loop.performWithoutWaking(inModes: [.work]) { loop.stop() }
                loop.wakeUp()
                loop.runOn(.work)
            }
        }
        #expect(
            events.map(\.summary) == [
                "work 0 asked to add s", "work 0 asked to add t", "work 0 asked to signal s",
                "- 0 asked to stop",
                "work 1 entry", "work 1 signalled s", "work 1 timer t", "work 1 pass", "work 1 exit timedOut",
                "work 0 asked to perform", "- 0 asked to wakeUp", "work 1 entry", "work 1 asked to stop",
                "work 1 block", "work 1 pass that may sleep", "work 1 exit stopped",
            ])
        let subjects = Set(events.filter { $0.summary.hasSuffix(" s") }.map(\.subject))
        #expect(subjects.count == 1 && !subjects.contains(nil))
    }

    @Test func `a wait begins when the loop falls asleep, after its observers, and within its pass`() throws {
        let events = try onLoopThread { loop -> [RunLoopEvent] in
            let slow = RunLoop.Observer(activities: .beforeWaiting) { _, _ in
                spin(until: LoopClock.now.advanced(bySeconds: 0.01))
            }
            loop.add(slow, forMode: .work)
            loop.add(Port(), forMode: .work)
            return Recorder.recordAll(loop) {
                Thread.detachNewThread {
                    // If nothing comes the run ends by its own limit.
                    try? loop.waitUntilAsleep()
                    loop.stop()
                }
                loop.runOn(.work)
            }
        }
        let observed = try #require(events.first { $0.summary == "work 1 observer beforeWaiting" })
        let wait = try #require(events.first { $0.summary == "work 1 wait" })
        let pass = try #require(events.first { $0.summary == "work 1 pass that may sleep" })
        guard case .callOut(_, _, let observing) = observed.detail, case .wait(let slept) = wait.detail,
            case .pass(_, let passed) = pass.detail
        else { return }
        #expect(pass.began <= observed.began && observed.began + observing <= wait.began)
        #expect(wait.began + slept <= pass.began + passed)
    }

    @Test func `ready events of modes that do not run are held back, and only those`() throws {
        let held = try onLoopThread { loop -> [[String]] in
            let log = EventLog()
            let pipe = BytePipe()
            let descriptor = pipe.source("descriptor", to: log)
            descriptor.label = "d"
            loop.add(descriptor, forMode: .work)
            loop.addDueTimer("timer", to: log, mode: .work).label = "t"
            loop.addSignalled("source", to: log, mode: .work).label = "s"
            let idle = RunLoop.Source {}
            loop.add(idle, forMode: .work)
            loop.add(Timer(timeInterval: 60, repeats: false) { _ in }, forMode: .work)
            loop.performWithoutWaking(inModes: [.work]) {}
            let seen = EventLog()
            var found: [[String]] = []
            pipe.write()
            found.append(loop.heldBackInWords)
            loop.performWithoutWaking(inModes: [.other]) {
                seen.note(loop.heldBackInWords.joined(separator: ","))
            }
            loop.poll(.other)
            found.append(seen.entries)
            // Members that are in the running mode too are not held back.
            loop.add(descriptor, forMode: .inner)
            loop.performWithoutWaking(inModes: [.inner]) {
                seen.note(loop.heldBackInWords.joined(separator: ","))
            }
            loop.poll(.inner)
            found.append(seen.entries.suffix(1).map { $0 })
            return found
        }
        let all = ["block ", "descriptor read d", "signalled s", "timer t"]
        #expect(held == [all, [all.joined(separator: ",")], ["block ,signalled s,timer t"]])
    }

    @Test func `call-outs that are not made are not reported (SRC-23, RL-66)`() throws {
        let events = try onLoopThread { loop in
            let first = RunLoop.Observer(activities: .entry, order: 1) { _, _ in
                loop.perform(inModes: [.work]) {}
                loop.poll(.work)
            }
            first.label = "first"
            loop.add(first, forMode: .work)
            loop.add(Port(), forMode: .work)
            return Recorder.record(loop) { loop.poll(.work) }.map(\.summary)
        }
        #expect(
            events == [
                "work 1 entry", "work 2 entry", "work 2 block", "work 2 exit timedOut",
                "work 1 observer entry first", "work 1 exit timedOut",
            ])
    }

    @Test func `a removed instrument receives nothing`() throws {
        let events = try onLoopThread { loop -> [RunLoopEvent] in
            InstrumentTurn.take {
                let recorder = Recorder(loop)
                RunLoop.instrument = recorder
                guard RunLoop.instrument is Recorder else { return [] }
                loop.add(Port(), forMode: .work)
                loop.poll(.work)
                RunLoop.instrument = nil
                loop.poll(.work)
                guard RunLoop.instrument == nil else { return [] }
                return recorder.events
            }
        }
        #expect(events.map(\.summary) == ["work 1 entry", "work 1 exit timedOut"])
    }

    /// A look at the loop moves its blocks to the queues of their modes; a recorder does so in a thread of its own.
    @Test func `RL-60 a block that a look at the loop moves when a run begins is performed at once`() throws {
        let result = try onLoopThread { loop -> RunLoop.RunResult in
            loop.perform { loop.stop() }
            return InstrumentTurn.take {
                RunLoop.instrument = EntryLook(loop)
                defer { RunLoop.instrument = nil }
                return loop.run(in: .default, for: testPatience, returnAfterSourceHandled: false)
            }
        }
        #expect(result == .stopped)
    }

    @Test func `an instrument that is released may use a loop`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            InstrumentTurn.take {
                RunLoop.instrument = Waker(loop, log)
                RunLoop.instrument = nil
            }
        }
        // A loop of another test that tells of an event may hold it for a moment longer.
        try waitFor("the release") { log.entries.isEmpty ? nil : () }
        #expect(log.entries == ["released"])
    }
}

/// Looks at a loop as a recorder does, when a run of it begins.
private final class EntryLook: RunLoop.Instrument {
    private let loop: RunLoop

    init(_ loop: RunLoop) { self.loop = loop }

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if loop === self.loop, case .entry = event.detail { _ = loop.heldBackInWords }
    }
}

/// Wakes a loop when it is released.
private final class Waker: RunLoop.Instrument {
    private let loop: RunLoop
    private let log: EventLog

    init(_ loop: RunLoop, _ log: EventLog) {
        self.loop = loop
        self.log = log
    }

    deinit {
        loop.wakeUp()
        log.note("released")
    }

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {}
}

/// Records the events of one loop.
private final class Recorder: RunLoop.Instrument {
    private let loop: RunLoop
    private let kept = Mutex<[RunLoopEvent]>([])

    init(_ loop: RunLoop) {
        self.loop = loop
    }

    var all: [RunLoopEvent] { kept.withLock { $0 } }

    /// The events of the loop without passes and requests, which have tests of their own.
    var events: [RunLoopEvent] { all.filter { !$0.isPassOrRequest } }

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if loop === self.loop { kept.withLock { $0.append(event) } }
    }

    static func record(_ loop: RunLoop, _ body: () -> Void) -> [RunLoopEvent] {
        recordAll(loop, body).filter { !$0.isPassOrRequest }
    }

    static func recordAll(_ loop: RunLoop, _ body: () -> Void) -> [RunLoopEvent] {
        InstrumentTurn.take {
            let recorder = Recorder(loop)
            RunLoop.instrument = recorder
            defer { RunLoop.instrument = nil }
            body()
            return recorder.all
        }
    }
}

extension RunLoopEvent {
    fileprivate var isPassOrRequest: Bool {
        switch detail {
        case .pass, .request: true
        case .entry, .exit, .wait, .callOut, .deferredWork: false
        }
    }

    /// All but the times.
    fileprivate var summary: String {
        let text =
            switch detail {
            case .entry: "entry"
            case .exit(let result): "exit \(result)"
            case .wait: "wait"
            case .callOut(let callOut, let label, _): "\(callOut.summary)\(label.map { " \($0)" } ?? "")"
            case .deferredWork(let count, _): "deferred work \(count)"
            case .pass(let activities, _):
                "pass\(activities.contains(.beforeWaiting) ? " that may sleep" : "")"
            case .request(let request, let label): "asked to \(request)\(label.map { " \($0)" } ?? "")"
            }
        return "\(mode?.rawValue ?? "-") \(depth) \(text)"
    }
}

extension RunLoop {
    fileprivate var heldBackInWords: [String] {
        var members: [Any] = []
        return HeldBackEvent.all(of: self, keeping: &members).map { "\($0.kind.summary) \($0.label ?? "")" }
            .sorted()
    }
}

extension RunLoopEvent.CallOut {
    fileprivate var summary: String {
        switch self {
        case .observer(let activity): "observer \(activity.name)"
        case .block: "block"
        case .signalledSource: "signalled"
        case .descriptorSource(let interest): "descriptor\(interest.contains(.read) ? " read" : "")"
        case .timer: "timer"
        case .mainQueue: "main queue"
        case .delegate(let name): "delegate \(name)"
        case .notification(let name): "notification \(name)"
        }
    }
}
