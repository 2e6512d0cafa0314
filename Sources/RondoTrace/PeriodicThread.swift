internal import RondoCore
internal import RondoMutex

/// A thread that repeats its body at intervals until it is stopped.
final class PeriodicThread: Sendable {
    private let name: String
    private let interval: Double
    private let isRunning = Mutex(false)
    private let wakeUp = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameter interval: Seconds between two calls of the body.
    init(name: String, interval: Double) {
        self.name = name
        self.interval = interval
    }

    /// Does nothing if the thread runs already, or cannot be made.
    func start(_ body: @escaping @Sendable () -> Void) {
        let isFirst = isRunning.withLock { isRunning in
            defer { isRunning = true }
            return !isRunning
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try SystemThread.start(name: name) { [self] in
                while wakeUp.wait(timeout: .now() + interval) == .timedOut { body() }
                ended.signal()
            }
        } catch {
            // There is no thread to stop; the next call tries again.
            isRunning.withLock { $0 = false }
        }
    }

    /// Waits until a call of the body that is running has returned. Must not be called on the thread itself.
    func stop() {
        let wasRunning = isRunning.withLock { isRunning in
            defer { isRunning = false }
            return isRunning
        }
        guard wasRunning else { return }
        wakeUp.signal()
        ended.wait()
    }
}
