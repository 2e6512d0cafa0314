internal import RondoMutex

/// Hands work to queues of Dispatch and of Foundation for run loops, by a thread that may be stopped meanwhile.
///
/// Dispatch makes a thread for a queue where none is idle. Where the system has none left, it stops the thread that has
/// handed in the work, and tries again each second, for ever: a run loop's timers and timeouts would stand still with it.
package final class DispatchSubmitter: Sendable {
    package static let shared = DispatchSubmitter()

    /// Seconds after which a thread is tried for again where the system had none.
    private static let retryInterval = 0.1

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var hasThread = false
        /// A loop tries again.
        var isRetrying = false
    }

    private let state = Mutex(State())
    /// Counts what has come.
    ///
    /// `nonisolated(unsafe)`: it is allocated once and for ever, and may be used by any thread.
    private nonisolated(unsafe) let arrivals: UnsafeMutablePointer<sem_t>

    private init() {
        arrivals = .allocate(capacity: 1)
        sem_init(arrivals, 0, 0)
    }

    /// Has `body` called soon, in the order of these calls, by a thread that may wait for it.
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
        // The main loop for a thread that does not run its own at the moment.
        let loop = RunLoop.current.currentMode == nil ? RunLoop.main : RunLoop.current
        loop.add(timer, forMode: .common)
    }

    private func work() {
        while true {
            // A signal may end it early, which does no harm.
            sem_wait(arrivals)
            let taken = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            for body in taken { body() }
        }
    }
}
