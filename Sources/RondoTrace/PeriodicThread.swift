internal import CRondoSystem
internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A thread that repeats its body at intervals until it is stopped.
final class PeriodicThread: Sendable {
    private let name: String
    private let interval: Double
    private let isRunning = Mutex(false)
    /// The number of the thread; 0 before it runs.
    private let serial = Atomic<UInt64>(0)
    private let wakeUp = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameter interval: Seconds between two calls of the body.
    init(name: String, interval: Double) {
        self.name = name
        self.interval = interval
    }

    /// Does nothing if the thread runs already, or cannot be made.
    ///
    /// After a stop by the thread itself it must not be started again: `ended` has kept a signal that no call
    /// awaited, and the next `stop` would not wait.
    func start(_ body: @escaping @Sendable () -> Void) {
        let isFirst = isRunning.withLock { isRunning in
            defer { isRunning = true }
            return !isRunning
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try SystemThread.start(name: name) { [self] in
                serial.store(rondo_thread_serial(), ordering: .relaxed)
                while wakeUp.wait(timeout: .now() + interval) == .timedOut { body() }
                ended.signal()
            }
        } catch {
            // There is no thread to stop; the next call tries again.
            isRunning.withLock { $0 = false }
        }
    }

    /// Waits until a call of the body that is running has returned, but not for the call that this is made
    /// in: the body may release an object of the program's whose `deinit` ends the process.
    func stop() {
        let wasRunning = isRunning.withLock { isRunning in
            defer { isRunning = false }
            return isRunning
        }
        guard wasRunning else { return }
        wakeUp.signal()
        if serial.load(ordering: .relaxed) != rondo_thread_serial() { ended.wait() }
    }
}
