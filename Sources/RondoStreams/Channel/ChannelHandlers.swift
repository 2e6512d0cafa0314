/// The handlers of a channel that asks its owner about trust or an identity.
///
/// An object of its own, because most channels have none, and two closures are larger than the rest of a channel.
final class ChannelHandlers {
    var onTrust: ((TLSTrust) -> Void)?
    var onIdentityRequest: ((TLSIdentityRequest) -> Void)?

    var isEmpty: Bool { onTrust == nil && onIdentityRequest == nil }
}
