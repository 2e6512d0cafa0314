/// Lets the callbacks of run loops into a channel, one thread at a time. (The registration with these loops is
/// `ChannelRegistration`.)
///
/// The channel's owner implements it, because the owner holds the channel; a weak reference to the channel
/// would make every use of it slower.
package protocol ChannelGate: AnyObject, Sendable {
    /// Runs `body` with the channel of `registration`. Does nothing where another thread is inside, or the channel is
    /// gone. Any thread.
    func enter(for registration: ChannelRegistration, _ body: (SocketChannel) -> Void)
}

/// The gate of a channel whose owner has set none.
///
/// `@unchecked Sendable`: such a channel is used by one thread, that of its loop.
final class OpenGate: ChannelGate, @unchecked Sendable {
    private weak var channel: SocketChannel?

    init(_ channel: SocketChannel) { self.channel = channel }

    func enter(for _: ChannelRegistration, _ body: (SocketChannel) -> Void) {
        if let channel { body(channel) }
    }
}
