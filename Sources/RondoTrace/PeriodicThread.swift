internal import RondoCore
internal import Synchronization

/// A thread that does the same thing again and again, until it is stopped.
final class PeriodicThread: Sendable {
    private let name: String
    private let interval: Double
    private let isRunning = Mutex(false)
    private let wakeUp = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameter interval: Seconds of rest between two turns.
    init(name: String, interval: Double) {
        self.name = name
        self.interval = interval
    }

    /// Does nothing where it runs already.
    func start(_ body: @escaping @Sendable () -> Void) {
        let isFirst = isRunning.withLock { isRunning in
            defer { isRunning = true }
            return !isRunning
        }
        guard isFirst else { return }
        let thread = Thread { [self] in
            while wakeUp.wait(timeout: .now() + interval) == .timedOut { body() }
            ended.signal()
        }
        thread.name = name
        thread.start()
    }

    /// Waits for the turn that is under way. Not from the thread itself.
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
