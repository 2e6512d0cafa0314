import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

/// Closures that are performed on other threads.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct ThreadPerformTests {
    @Test func `PL-11 a closure is queued on the thread's loop, which is woken, in the common modes`() throws
    {
        let target = try Target(mode: .tracking)
        try target.loop.waitUntilAsleep()
        let isDone = Latch()
        target.thread.perform {
            #expect(RunLoop.currentLoop() === target.loop)
            isDone.open()
        }
        try isDone.wait()
        target.stop()
    }

    @Test func `PL-11 a closure performed on a thread runs in one of its modes only`() throws {
        let target = try Target(mode: .work)
        let log = EventLog()
        target.thread.perform(inModes: [.other]) { log.note("other") }
        target.thread.perform { log.note("common") }
        try target.thread.perform(inModes: [.work, .other], waitUntilDone: true) { log.note("work") }
        try target.thread.perform(inModes: [], waitUntilDone: true) { log.note("none") }
        #expect(log.entries == ["work"])
        target.stop()
    }

    @Test func `PL-12 a call that waits returns when the closure has, with its result or its error`() throws {
        let target = try Target()
        let log = EventLog()
        try target.thread.perform(inModes: [.default], waitUntilDone: true) { log.note("performed") }
        log.note("returned")
        #expect(log.entries == ["performed", "returned"])
        #expect(throws: Failure.self) {
            try target.thread.perform(waitUntilDone: true) { throw Failure() }
        }
        #expect(try target.loop.performAndWait { 42 } == 42)
        #expect(throws: Failure.self) { try target.loop.performAndWait { throw Failure() } }
        #expect(throws: RunLoop.PerformError.noModes) { try target.loop.performAndWait(inModes: []) {} }
        target.stop()
    }

    @Test func `PL-12 PL-13 a closure for the own thread runs at once if it waits, else later`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            try? Thread.current.perform(waitUntilDone: false) { log.note("queued") }
            Thread.current.perform { log.note("queued too") }
            try? Thread.current.perform(inModes: [.work], waitUntilDone: true) { log.note("at once") }
            try? loop.performAndWait(inModes: [.work]) { log.note("at once too") }
            loop.poll()
            return log.entries
        }
        #expect(entries == ["at once", "at once too", "queued", "queued too"])
    }

    @Test func `PL-14 a thread that waits runs its own loop in no mode`() throws {
        let target = try Target()
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.addDueTimer("own timer", to: log)
            try? target.loop.performAndWait {
                #expect(loop.currentMode == nil)
                log.note("performed")
            }
            log.note("returned")
            loop.poll()
            return log.entries
        }
        #expect(entries == ["performed", "returned", "own timer"])
        target.stop()
    }

    @Test func `PL-15 if the thread ends a waiting call throws, and a queued closure is dropped`() throws {
        let target = try Target()
        let log = EventLog()
        let object = WeakObject()
        do {
            let kept = NSObject()
            object.object = kept
            let box = Kept(kept)
            target.thread.perform(inModes: [.work]) { log.note("\(box) never") }
        }
        let waiting = LoopThread { _ in
            #expect(throws: RunLoop.PerformError.threadEnded) {
                try target.thread.perform(inModes: [.other], waitUntilDone: true) { log.note("never") }
            }
        }
        _ = try waiting.loop
        target.stop()
        try waiting.value()
        #expect(throws: RunLoop.PerformError.threadEnded) {
            try target.thread.perform(waitUntilDone: true) { log.note("never") }
        }
        #expect(throws: RunLoop.PerformError.threadEnded) {
            try target.loop.performAndWait { log.note("never") }
        }
        try waitFor("the dropped closure") { object.object == nil ? () : nil }
        #expect(log.entries == [])
    }

    /// In a process of its own: what was on the stack of that thread is never released.
    @Test func `PL-15 a thread that ends inside the closure ends the wait for it`() async {
        await #expect(processExitsWith: .success) {
            let loop = Mutex<RunLoop?>(nil)
            let thread = Thread {
                loop.withLock { $0 = RunLoop.currentLoop() }
                RunLoop.currentLoop().add(Port(), forMode: .default)
                RunLoop.currentLoop().runOn()
            }
            thread.start()
            let target = try waitFor("the loop") { loop.withLock { $0 } }
            let waiting = LoopThread { _ in
                do {
                    try target.performAndWait { Thread.exit() }
                    return "returned"
                } catch {
                    return "\(error)"
                }
            }
            let outcome = try waiting.value()
            precondition(outcome == RunLoop.PerformError.threadEnded.description, outcome)
            // Without LeakSanitizer's look, which would find that.
            _exit(0)
        }
    }

    @Test func `PL-16 threads that wait for each other are warned about, both by name`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            RunLoop.unservedWarningDelay = 0.05
            let (first, second) = (RunLoopThread(name: "first"), RunLoopThread(name: "second"))
            let (one, two) = (first.start(), second.start())
            let (isInFirst, isInSecond) = (Latch(), Latch())
            first.perform {
                isInFirst.open()
                isInSecond.waitOrRecord()
                try? two.performAndWait {}
            }
            second.perform {
                isInSecond.open()
                isInFirst.waitOrRecord()
                try? one.performAndWait {}
            }
            let warnings = try waitFor("both warnings") {
                LogCatcher.log.entries.count == 2 ? LogCatcher.log.entries : nil
            }
            for warning in warnings {
                precondition(warning.contains("first") && warning.contains("second"), warning)
                precondition(warning.contains("busy with a callback"), warning)
            }
            precondition(warnings.contains { $0.contains("waits itself, for") }, "\(warnings)")
        }
    }

    @Test func `PL-17 a closure performed on a thread is not cancelled with its target's requests`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let kept = Kept(NSObject())
            Thread.current.perform { log.note("performed for \(type(of: kept.object))") }
            NSObject.cancelPreviousPerformRequests(withTarget: kept.object)
            loop.poll()
            return log.entries
        }
        #expect(entries == ["performed for NSObject"])
    }

    @Test func `PL-20 a thread that has no loop yet gets what was performed once it has and runs it`() throws
    {
        let (asks, isDone) = (Latch(), Latch())
        let log = EventLog()
        let thread = Thread {
            asks.waitOrRecord()
            RunLoop.currentLoop().poll()
            log.note("ran")
            isDone.open()
        }
        thread.name = "late"
        thread.perform { log.note("1") }
        thread.start()
        thread.perform { log.note("2") }
        #expect(thread.whyNotDelivering.reason == .noLoopYet)
        #expect(thread.whyNotDelivering.description.contains("has no loop yet"))
        asks.open()
        try isDone.wait()
        #expect(log.entries == ["1", "2", "ran"])
    }

    @Test func `PL-15 PL-20 a thread that ends without a loop ends the wait for it`() throws {
        let end = Latch()
        let thread = Thread { end.waitOrRecord() }
        thread.start()
        let found = Found()
        found.thread = thread
        let waiting = LoopThread { _ in
            #expect(throws: RunLoop.PerformError.threadEnded) {
                try found.thread?.perform(waitUntilDone: true) { Issue.record("it was called") }
            }
        }
        _ = try waiting.loop
        end.open()
        try waiting.value()
        #expect(thread.whyNotDelivering.reason == .threadEnded)
    }

    @Test func `PL-21 a task is suspended, and gets the value or the error`() async throws {
        let target = try Target()
        let loop = target.loop
        #expect(try await loop.run { RunLoop.currentLoop() === loop })
        await #expect(throws: Failure.self) { try await loop.run(inModes: [.default]) { throw Failure() } }
        let never = Task { try await loop.run(inModes: [.other]) { Issue.record("it was called") } }
        target.stop()
        await #expect(throws: RunLoop.PerformError.threadEnded) { try await never.value }
        await #expect(throws: RunLoop.PerformError.threadEnded) { try await loop.run {} }
    }
}

private struct Failure: Error {}

/// A thread whose loop runs in one mode.
/// `@unchecked Sendable`: a thread's object is only named here.
private final class Target: @unchecked Sendable {
    let worker: RunLoopThread
    let thread: Thread
    var loop: RunLoop { worker.runLoop }

    init(mode: RunLoop.Mode = .default) throws {
        worker = RunLoopThread(name: "target", mode: mode)
        worker.start()
        let found = Found()
        worker.perform { found.thread = Thread.current }
        thread = try waitFor("the thread") { found.thread }
    }

    func stop() {
        worker.stop()
        worker.join()
    }
}

/// `@unchecked Sendable`: guarded by its lock; a thread's object may be named by any thread.
private final class Found: @unchecked Sendable {
    private let lock = NSLock()
    private var found: Thread?

    var thread: Thread? {
        get { lock.withLock { found } }
        set { lock.withLock { found = newValue } }
    }
}

/// `@unchecked Sendable`: the object is not used, only kept.
private struct Kept: @unchecked Sendable {
    let object: NSObject

    init(_ object: NSObject) { self.object = object }
}
