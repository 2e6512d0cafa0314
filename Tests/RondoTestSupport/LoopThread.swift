package import RondoCore
internal import RondoMutex
internal import RondoProbeSupport

/// A thread of its own for a test, with the run loop of that thread.
///
/// Tests run on a shared pool of two threads, whose loops outlive a test: none may use its own thread's loop.
package final class LoopThread<Value: Sendable>: Sendable {
    private struct State {
        var loop: RunLoop?
        var value: Value?
    }

    private let state = Mutex(State())
    private let ended = DispatchSemaphore(value: 0)
    private let thread = Mutex<pthread_t?>(nil)

    /// Starts a thread and calls `body` there with the thread's loop.
    ///
    /// The caller goes on at once; `loop` and `value()` wait for what they need.
    package init(_ body: @escaping @Sendable (RunLoop) -> Value) {
        let jobs = ThreadJobs()
        let started = JoinedThreads.start { [ended] in
            jobs.runOne()
            ended.signal()
        }
        thread.withLock { $0 = started }
        // A task of the test's own task, so that an expectation that fails in `body` counts for the test by
        // its name.
        Task(executorPreference: jobs) { [self] in
            state.withLock { $0.loop = RunLoop.currentLoop() }
            let value = body(RunLoop.currentLoop())
            state.withLock { $0.value = value }
        }
    }

    /// The thread's loop. It is kept, torn down, as long as this object is.
    package var loop: RunLoop {
        get throws { try waitFor("the loop of a thread") { state.withLock { $0.loop } } }
    }

    /// Waits for the end of the thread, its loop torn down, and returns what `body` returned. To be called
    /// once.
    @discardableResult
    package func value() throws -> Value {
        guard ended.wait(timeout: .now() + testPatience) == .success,
            let value = state.withLock({ $0.value }), let thread = thread.withLock({ $0 })
        else { throw NeverCame(description: "waited in vain for the end of a thread") }
        pthread_join(thread, nil)
        return value
    }
}

/// Calls `body` on a fresh thread, with the run loop of that thread, and waits for the thread's end.
@discardableResult
package func onLoopThread<Value: Sendable>(
    _ body: @escaping @Sendable (RunLoop) -> Value
) throws -> Value {
    try LoopThread(body).value()
}

/// The longest that a test waits for something, in seconds; only a failure takes that long.
///
/// Well below a minute: after 59.7 s libev ends each wait by itself (its `MAX_BLOCKTIME`), the loop looks at
/// everything anew, and a wake-up that was missed is found. A test that waits so long would pass. For the same reason
/// a run of a loop that a test limits for the case of a failure has a limit above this one: then the wait for the
/// thread fails, and not the run.
package let testPatience: TimeInterval = 30

/// Something that a test waited for has not come; reached by a failure only.
package struct NeverCame: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) {
        self.description = description
    }
}

/// The number of looks after which `waitFor` blocks its thread between two looks, and for how many milliseconds.
private let looksBeforeBlocking = 100
private let blockedMilliseconds: Int32 = 1

/// Waits until `value` is there. It is most often the state of another object, which tells no one of its changes.
///
/// The thread is blocked meanwhile, and not only yields. It is one of libdispatch's few, which are as many as there are
/// processors and give way to others only when they block: if all of them span, an operation queue that is to bring
/// about what they wait for would have no thread to run on.
@discardableResult
package func waitFor<Value>(_ what: String, _ value: () -> Value?) throws -> Value {
    let limit = LoopClock.systemNow.advanced(bySeconds: testPatience)
    var looks = 0
    while true {
        if let value = value() { return value }
        if LoopClock.systemNow > limit { throw NeverCame(description: "waited in vain for \(what)") }
        looks += 1
        if looks < looksBeforeBlocking { sched_yield() } else { _ = poll(nil, 0, blockedMilliseconds) }
    }
}

/// Waits for a condition without keeping the thread, which belongs to the pool of Swift's tasks.
package func becomes(_ what: String, _ condition: () -> Bool) async throws {
    let limit = ContinuousClock.now + .seconds(testPatience)
    while !condition() {
        if ContinuousClock.now > limit { throw NeverCame(description: "waited in vain for \(what)") }
        await Task.yield()
    }
}

extension RunLoop {
    /// Waits until the loop, which runs on another thread, sleeps.
    package func waitUntilAsleep() throws {
        try waitFor("a loop to sleep") { isWaiting ? () : nil }
    }
}

/// The one job of a thread: a task without a suspension is one.
private final class ThreadJobs: TaskExecutor {
    private let job = Mutex<UnownedJob?>(nil)
    private let isThere = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.job.withLock { $0 = job }
        isThere.signal()
    }

    func runOne() {
        isThere.wait()
        job.withLock { $0 }?.runSynchronously(on: asUnownedTaskExecutor())
    }
}
