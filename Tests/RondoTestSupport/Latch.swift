internal import Dispatch
internal import RondoMutex
internal import Testing

/// Something that a thread waits for and another one lets happen, once and for all.
package final class Latch: Sendable {
    private let state = Mutex(false)
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package var isOpen: Bool { state.withLock { $0 } }

    package func open() {
        state.withLock { $0 = true }
        semaphore.signal()
    }

    /// Waits until it is open, for `seconds` at most.
    package func isOpen(within seconds: Double) -> Bool {
        guard semaphore.wait(timeout: .now() + seconds) == .success else { return false }
        // For other threads that wait.
        semaphore.signal()
        return true
    }

    /// Waits until it is open; throws after a time that only a failure reaches.
    package func wait() throws {
        guard semaphore.wait(timeout: .now() + testPatience) == .success else {
            throw NeverCame(description: "waited in vain at a latch")
        }
        // For other threads that wait.
        semaphore.signal()
    }

    /// The same in a closure that cannot throw: the failure is recorded, for no test where the thread has none.
    package func waitOrRecord() {
        do { try wait() } catch { Issue.record(error) }
    }
}
