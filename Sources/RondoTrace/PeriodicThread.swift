internal import RondoCore
internal import RondoMutex

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

    /// Does nothing where it runs already, or the system has no thread for it.
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
            // There is no such thread to be stopped; the next start tries again.
            isRunning.withLock { $0 = false }
        }
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
