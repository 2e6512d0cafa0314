internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The reason why an exchange has ended without a complete response.
enum ExchangeFailure: Error {
    case channel(ChannelError)
    case http(HTTPFailure)
    /// A proxy wants a credential before it makes a tunnel: the head of its response.
    indirect case tunnelChallenge(ResponseHead, ChannelError)
    case bodyStreamFailed(NSError)
    case bodyTooShort(announced: Int64, given: Int64)
    case bodyTooLong(announced: Int64)
}

extension ExchangeFailure {
    /// The failure of a load with this cause.
    ///
    /// - Parameter host: The host that a proxy was asked for; nil if no proxy was used.
    func ofLoad(throughProxyTo host: String?) -> LoadFailure {
        switch self {
        case .channel(let error): .channel(host.map { error.ofProxy(onWayTo: $0) } ?? error)
        case .http(let error): .http(error)
        case .tunnelChallenge(_, let error): .channel(error)
        case .bodyStreamFailed(let error): .bodyStreamFailed(error)
        case .bodyTooShort(let announced, let given): .bodyTooShort(announced: announced, given: given)
        case .bodyTooLong(let announced): .bodyTooLong(announced: announced)
        }
    }
}
