internal import RondoMutex

/// A thread that waits until its message finds room in a port's queue.
final class BlockedSender: Sendable {
    /// The longest single wait, in seconds; a longer wait consists of several.
    private static let longestWait: Double = 3_600

    let content: PortContent
    private let outcome = Mutex<Bool?>(nil)
    private let isOver = DispatchSemaphore(value: 0)

    init(_ content: PortContent) { self.content = content }

    /// Ends the wait. To be called once, under the port's lock.
    func finish(handedOver: Bool) {
        outcome.withLock { $0 = handedOver }
        isOver.signal()
    }

    /// Whether the message was handed over; nil while that is undecided.
    var wasHandedOver: Bool? { outcome.withLock { $0 } }

    /// Blocks until the wait is over, or until `end`.
    func wait(until end: LoopInstant) {
        while wasHandedOver == nil {
            let rest = end.seconds(since: LoopClock.systemNow)
            guard rest > 0 else { return }
            _ = isOver.wait(timeout: .now() + min(rest, Self.longestWait))
        }
    }
}
