internal import RondoMutex

/// Hands work for run loops to the queues of Dispatch and of Foundation, on a thread that may block
/// meanwhile.
///
/// If no thread is idle, Dispatch makes one for the queue. If the system has no thread left, Dispatch blocks
/// the thread that submitted the work, and tries again each second, for ever: on a run loop's thread, timers
/// and timeouts would not fire.
package final class DispatchSubmitter: Sendable {
    package static let shared = DispatchSubmitter()

    /// Seconds between two attempts to start the thread when the system has none left.
    private static let retryInterval = 0.1

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var hasThread = false
        /// A timer of a run loop will try to start the thread again.
        var isRetrying = false
    }

    private let state = Mutex(State())
    /// Counts the submissions.
    ///
    /// `nonisolated(unsafe)`: it is allocated once and for ever, and may be used by any thread.
    private nonisolated(unsafe) let arrivals: UnsafeMutablePointer<sem_t>

    private init() {
        arrivals = .allocate(capacity: 1)
        sem_init(arrivals, 0, 0)
    }

    /// Calls `body` soon, on a thread that may block, in the order of the calls.
    package func submit(_ body: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.waiting.append(body)
            defer { state.hasThread = true }
            return !state.hasThread
        }
        if needsThread { startThread() }
        sem_post(arrivals)
    }

    private func startThread() {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.dispatch") { [self] in work() }
        } catch {
            let mustRetry = state.withLock { state in
                state.hasThread = false
                defer { state.isRetrying = true }
                return !state.isRetrying
            }
            if mustRetry { retryLater() }
        }
    }

    private func retryLater() {
        let timer = Timer(timeInterval: Self.retryInterval, repeats: false) { [self] _ in
            let needsThread = state.withLock { state in
                state.isRetrying = false
                defer { state.hasThread = true }
                return !state.hasThread
            }
            if needsThread { startThread() }
        }
        // A thread that is not running its own loop uses the main loop.
        let loop = RunLoop.current.currentMode == nil ? RunLoop.main : RunLoop.current
        loop.add(timer, forMode: .common)
    }

    private func work() {
        while true {
            // A signal may end the wait early, which is harmless.
            sem_wait(arrivals)
            let taken = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            for body in taken { body() }
        }
    }
}
