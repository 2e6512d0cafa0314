import RondoMutex
import RondoStreams

/// A gate that does what a test wants.
///
/// `@unchecked Sendable`: the closure is set once, and is the test's own affair.
final class TestGate: ChannelGate, @unchecked Sendable {
    private let onEvent: (_ event: () -> Void, _ refuse: () -> Void) -> Void

    init(_ onEvent: @escaping (_ event: () -> Void, _ refuse: () -> Void) -> Void) { self.onEvent = onEvent }

    func admit(_ event: () -> Void, onRefusal: () -> Void) { onEvent(event, onRefusal) }
}

/// A gate that turns every event away, and counts them.
final class ClosedGate: ChannelGate {
    private let count = Mutex(0)

    var turnedAway: Int { count.withLock { $0 } }

    func admit(_ event: () -> Void, onRefusal: () -> Void) {
        count.withLock { $0 += 1 }
        onRefusal()
    }
}
