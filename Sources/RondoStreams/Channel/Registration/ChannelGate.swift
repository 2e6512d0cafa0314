/// Admits the events of a channel to the channel's owner, one call at a time. The owner has one lock for
/// everything that it does, and this is it. (The registration with run loops, whose callbacks are these
/// events, is `ChannelRegistration`.)
package protocol ChannelGate: AnyObject, Sendable {
    /// Runs `event`, unless another call is inside or this thread is none of the owner's loops. Any thread.
    ///
    /// - Parameter onRefusal: Called if another call is inside, before that leaves: it stops the channel's
    ///   events. The call inside then resumes the channel, unless its owner has suspended it. A gate that
    ///   makes threads wait instead does not call it.
    func admit(_ event: () -> Void, onRefusal: () -> Void)
}

/// The reference to a channel whose owner has set no gate: it keeps the channel no longer than the owner
/// does.
final class WeakChannel {
    private(set) weak var channel: SocketChannel?

    init(_ channel: SocketChannel) { self.channel = channel }
}
