import RondoCore
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// `perform(afterDelay:)` and `perform(order:)`.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct PerformRequestTests {
    @Test func `PL-1 a closure runs once on the calling thread's loop, after the delay, in one of the modes`()
        throws
    {
        let clock = ManualClock()
        try onLoopThread { loop in
            let log = EventLog()
            clock.attach(to: loop)
            for mode in [RunLoop.Mode.default, .work, .tracking] { loop.add(Port(), forMode: mode) }
            let model = Model(log)
            model.perform(afterDelay: 2) { $0.note("default") }
            model.perform(afterDelay: 2, inModes: [.work, .tracking]) { $0.note("work") }
            for mode in [RunLoop.Mode.default, .work] { loop.poll(mode) }
            #expect(log.entries == [])
            clock.advance(by: 1.999)
            for mode in [RunLoop.Mode.default, .work] { loop.poll(mode) }
            #expect(log.entries == [])
            clock.advance(by: 0.001)
            loop.poll(.work)
            #expect(log.entries == ["work"])
            for mode in [RunLoop.Mode.work, .tracking, .default, .default] { loop.poll(mode) }
            #expect(log.entries == ["work", "default"])
        }
    }

    @Test func `PL-1 methods by reference take the place of selectors`() throws {
        let entries = try onLoopThread { loop in
            let model = Model(EventLog())
            model.perform(Model.save, afterDelay: 0)
            model.perform(Model.note, with: "argument", afterDelay: 0, inModes: [.default])
            loop.runOn()
            return model.log.entries
        }
        #expect(entries == ["saved", "argument"])
    }

    @Test(arguments: [0, -1, -Double.infinity, Double.nan])
    func `PL-2 without a delay the closure runs in a later pass, never inside the call`(_ delay: Double)
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.beforeTimers, of: loop, in: .default)
            // From a block, which comes before the timers of its pass.
            loop.perform {
                Model(log).perform(afterDelay: delay) {
                    $0.note("performed")
                    loop.stop()
                }
                log.note("returned")
            }
            loop.add(Port(), forMode: .default)
            loop.runOn()
            return log.entries
        }
        #expect(entries == ["beforeTimers", "returned", "beforeTimers", "performed"])
    }

    @Test
    func `PL-3 a closure that is due in another mode runs in the first pass of one of its modes`() throws {
        let clock = ManualClock()
        let entries = try onLoopThread { loop in
            clock.attach(to: loop)
            let model = Model(EventLog())
            model.perform(afterDelay: 1) { $0.note("late") }
            loop.add(Port(), forMode: .work)
            clock.advance(by: 5)
            loop.poll(.work)
            model.note("work")
            loop.poll()
            return model.log.entries
        }
        #expect(entries == ["work", "late"])
    }

    @Test func `PL-4 requests that are due together run in order of time, equal times as they were made`()
        throws
    {
        let clock = ManualClock()
        let entries = try onLoopThread { loop in
            clock.attach(to: loop)
            let model = Model(EventLog())
            for (name, delay) in [("3", 2.0), ("1", 1.0), ("4", 2.0), ("2", 1.0)] {
                model.perform(afterDelay: delay) { $0.note(name) }
            }
            clock.advance(by: 3)
            loop.poll()
            return model.log.entries
        }
        #expect(entries == ["1", "2", "3", "4"])
    }

    @Test func `PL-5 PL-10 target, argument and closure are kept until it has run or was cancelled`() throws {
        try onLoopThread { loop in
            for cancels in [false, true] {
                let (target, argument) = (WeakObject(), WeakObject())
                var request: PerformRequest?
                do {
                    let (model, sent) = (Model(EventLog()), NSObject())
                    (target.object, argument.object) = (model, sent)
                    request = model.perform(Model.take, with: sent, afterDelay: 0)
                }
                #expect(target.object != nil && argument.object != nil)
                #expect(request?.isPending == true)
                if cancels { request?.cancel() } else { loop.runOn() }
                #expect(target.object == nil && argument.object == nil)
                #expect(request?.isPending == false)
            }
        }
    }

    @Test func `PL-6 a request keeps its modes from being empty, and ends no run`() throws {
        let clock = ManualClock()
        try onLoopThread { loop in
            clock.attach(to: loop)
            let model = Model(EventLog())
            model.perform(afterDelay: 1, inModes: [.work]) { $0.note("performed") }
            #expect(loop.poll(.work) == .timedOut)
            clock.advance(by: 2)
            loop.add(Port(), forMode: .work)
            model.perform(afterDelay: 0, inModes: [.work]) { _ in loop.stop() }
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: true) == .stopped)
            #expect(model.log.entries == ["performed"])
        }
    }

    @Test func `PL-7 an empty list of modes does nothing, the common name stands for the set`() throws {
        let entries = try onLoopThread { loop in
            let model = Model(EventLog())
            let nothing = model.perform(afterDelay: 0, inModes: []) { $0.note("never") }
            #expect(!nothing.isPending)
            #expect(loop.poll() == .finished)
            loop.addCommonMode(.work)
            model.perform(afterDelay: 0, inModes: [.common]) { $0.note("common") }
            loop.poll(.work)
            return model.log.entries
        }
        #expect(entries == ["common"])
    }

    @Test func `PL-8 cancelPreviousPerformRequests cancels those of the target on the calling thread's loop`()
        throws
    {
        let (mine, other) = (Model(EventLog()), Model(EventLog()))
        let (made, cancelled) = (Latch(), Latch())
        let elsewhere = LoopThread { loop in
            mine.perform(afterDelay: 0) { $0.note("other loop") }
            made.open()
            cancelled.waitOrRecord()
            loop.runOn()
        }
        try made.wait()
        try onLoopThread { loop in
            mine.perform(afterDelay: 0) { $0.note("mine") }
            mine.perform(afterDelay: 0, inModes: [.work]) { $0.note("mine in work") }
            other.perform(afterDelay: 0) { $0.note("other") }
            NSObject.cancelPreviousPerformRequests(withTarget: mine)
            loop.poll()
            #expect(loop.poll(.work) == .finished)
        }
        cancelled.open()
        try elsewhere.value()
        #expect(mine.log.entries == ["other loop"])
        #expect(other.log.entries == ["other"])
    }

    @Test func `PL-9 a request is cancelled by itself, from any thread, or by target and key`() throws {
        let request = Mutex<PerformRequest?>(nil)
        let model = Model(EventLog())
        let cancelled = Latch()
        let thread = LoopThread { loop in
            request.withLock { $0 = model.perform(afterDelay: 0) { $0.note("cancelled") } }
            cancelled.waitOrRecord()
            model.perform(key: "save", afterDelay: 0) { $0.note("save") }
            model.perform(key: "load", afterDelay: 0) { $0.note("load") }
            model.perform(afterDelay: 0) { $0.note("no key") }
            NSObject.cancelPreviousPerformRequests(withTarget: model, key: "save")
            loop.runOn()
        }
        try waitFor("the request") { request.withLock { $0 } }.cancel()
        cancelled.open()
        try thread.value()
        #expect(model.log.entries == ["load", "no key"])
    }

    /// Asks for the request while it is compared, as a key of the program's may.
    private final class AskingKey: Hashable, Sendable {
        let request = Mutex<PerformRequest?>(nil)

        static func == (left: AskingKey, right: AskingKey) -> Bool {
            left === right && left.request.withLock { $0 }?.isPending ?? false
        }

        func hash(into hasher: inout Hasher) {}
    }

    @Test func `PL-9 a key is compared with no lock held`() throws {
        let entries = try onLoopThread { loop in
            let model = Model(EventLog())
            let key = AskingKey()
            let request = model.perform(key: key, afterDelay: 0) { $0.note("called") }
            key.request.withLock { $0 = request }
            NSObject.cancelPreviousPerformRequests(withTarget: model, key: key)
            loop.runOn()
            return model.log.entries
        }
        #expect(entries.isEmpty)
    }

    @Test func `PL-8 a thousand times cancelled and repeated, it runs once`() throws {
        let entries = try onLoopThread { loop in
            let model = Model(EventLog())
            for number in 1...1000 {
                NSObject.cancelPreviousPerformRequests(withTarget: model)
                model.perform(Model.note, with: "\(number)", afterDelay: 0)
            }
            loop.runOn()
            return model.log.entries
        }
        #expect(entries == ["1000"])
    }

    @Test func `PL-10 at the end of the thread requests are released`() throws {
        let target = WeakObject()
        let request = try onLoopThread { _ in
            let model = Model(EventLog())
            target.object = model
            return model.perform(afterDelay: 1000) { $0.note("never") }
        }
        #expect(target.object == nil)
        #expect(!request.isPending)
        request.cancel()
    }

    @Test func `a request has a label, says why it waits, and is described`() throws {
        try onLoopThread { loop in
            let request = Model(EventLog()).perform(afterDelay: 1000) { _ in }
            request.label = "save"
            #expect(request.label == "save")
            #expect(request.whyNotDelivering.reason == .loopNeverRan)
            #expect(loop.debugDescription.contains("timer “save”, due in "))
            request.cancel()
            #expect(request.whyNotDelivering.reason == .invalid)
        }
    }

    @Test func `PL-18 performInBackground runs on a new thread, whose loop nothing runs`() throws {
        let model = Model(EventLog())
        let isDone = Latch()
        let mine = pthread_self()
        model.performInBackground { model in
            #expect(pthread_self() != mine)
            #expect(RunLoop.currentLoop() !== RunLoop.main)
            #expect(RunLoop.currentLoop().currentMode == nil)
            RunLoop.currentLoop().perform { model.note("never") }
            model.note("background")
            isDone.open()
        }
        try isDone.wait()
        #expect(model.log.entries == ["background"])
    }

    @Test func `PL-19 perform with an order runs at the start of the next pass, smaller order first`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.beforeTimers, of: loop, in: .default)
            let model = Model(log)
            loop.perform {
                loop.perform(order: 2, modes: [.default], target: model) { $0.note("2") }
                loop.perform(order: 1, modes: [.default], target: model) { $0.note("1") }
                loop.perform(order: 2, modes: [.common], target: model) { $0.note("2 again") }
                loop.perform(order: 0, modes: [.work], target: model) { $0.note("work") }
                loop.perform { log.note("block") }
                log.note("returned")
            }
            #expect(loop.runOn() == .finished)
            return log.entries
        }
        // The block is run at the end of the first pass.
        #expect(entries == ["beforeTimers", "returned", "block", "beforeTimers", "1", "2", "2 again"])
    }

    @Test func `PL-19 a closure with an order runs before blocks, keeps its mode non-empty and ends no run`()
        throws
    {
        let entries = try onLoopThread { loop in
            let model = Model(EventLog())
            loop.perform(order: 0, modes: [.default], target: model) { $0.note("ordered") }
            loop.add(Port(), forMode: .default)
            loop.perform {
                model.note("block")
                loop.stop()
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .stopped)
            loop.perform(order: 0, modes: [.work], target: model) { $0.note("work") }
            #expect(loop.runOn(.work) == .finished)
            return model.log.entries
        }
        #expect(entries == ["ordered", "block", "work"])
    }

    @Test func `PL-19 a closure that an observer performs at the start of a pass waits for the next one`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.beforeTimers, of: loop, in: .default)
            let model = Model(log)
            let observer = RunLoop.Observer(activities: .beforeSources, repeats: false) { _, _ in
                loop.perform(order: 0, modes: [.default], target: model) { model in
                    model.note("ordered")
                    loop.stop()
                }
            }
            loop.add(observer, forMode: .default)
            loop.add(Port(), forMode: .default)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            return log.entries
        }
        #expect(entries == ["beforeTimers", "beforeTimers", "ordered"])
    }

    @Test func `PL-19 cancelPerform cancels a target's closures, in the running batch too`() throws {
        let entries = try onLoopThread { loop in
            let (model, other) = (Model(EventLog()), Model(EventLog()))
            loop.perform(order: 0, modes: [.default], target: model) { $0.note("cancelled") }
            loop.cancelPerform(target: model)
            loop.perform(order: 1, modes: [.default], target: other) { _ in loop.cancelPerform(target: model)
            }
            loop.perform(order: 2, modes: [.default], target: model) { $0.note("cancelled late") }
            loop.perform(order: 3, modes: [.default], target: other) { _ in model.note("other") }
            #expect(loop.runOn() == .finished)
            return model.log.entries
        }
        #expect(entries == ["other"])
    }
}

/// A target.
private final class Model: NSObject, Sendable {
    let log: EventLog

    init(_ log: EventLog) { self.log = log }

    func save() { log.note("saved") }

    func note(_ text: String) { log.note(text) }

    func take(_ object: NSObject) {}
}
