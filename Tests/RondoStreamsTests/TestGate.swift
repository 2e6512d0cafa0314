import RondoStreams

/// A gate that does what a test wants.
///
/// `@unchecked Sendable`: the closure is set once, and is the test's own affair.
final class TestGate: ChannelGate, @unchecked Sendable {
    private let onEnter: ((SocketChannel) -> Void) -> Void

    init(_ onEnter: @escaping (_ body: (SocketChannel) -> Void) -> Void) { self.onEnter = onEnter }

    func enter(for _: ChannelRegistration, _ body: (SocketChannel) -> Void) { onEnter(body) }
}
