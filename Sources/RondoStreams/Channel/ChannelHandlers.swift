/// What most channels have none of; in the channel it would take more room than all the rest.
final class ChannelHandlers {
    var onTrust: ((TLSTrust) -> Void)?
    var onIdentityRequest: ((TLSIdentityRequest) -> Void)?

    var isEmpty: Bool { onTrust == nil && onIdentityRequest == nil }
}
