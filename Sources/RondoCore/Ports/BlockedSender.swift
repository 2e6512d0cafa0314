internal import RondoMutex

/// A thread that waits until its message finds room in a port's queue.
final class BlockedSender: Sendable {
    /// The longest wait of one call to the system, in seconds: a wait without end is made of several.
    private static let longestWait: Double = 3_600

    let content: PortContent
    private let outcome = Mutex<Bool?>(nil)
    private let isOver = DispatchSemaphore(value: 0)

    init(_ content: PortContent) { self.content = content }

    /// Ends the wait. Called once, under the lock of the port.
    func finish(handedOver: Bool) {
        outcome.withLock { $0 = handedOver }
        isOver.signal()
    }

    /// Whether the message was handed over; nil: that is open yet.
    var wasHandedOver: Bool? { outcome.withLock { $0 } }

    /// Blocks until the wait is over, or until `end`.
    func wait(until end: LoopInstant) {
        while wasHandedOver == nil {
            let rest = end.seconds(since: LoopClock.machineNow)
            guard rest > 0 else { return }
            _ = isOver.wait(timeout: .now() + min(rest, Self.longestWait))
        }
    }
}
