internal import FoundationNetworking
internal import RondoHTTP

/// A response on its way to the delegate: the head that a server has sent, or what another answer has made.
enum IncomingResponse: Equatable {
    case http(ResponseHead, bodyLength: Int64?)
    /// The response to a CONNECT: it has no body, and its connection is gone.
    case headAlone(ResponseHead)
    case other(URLResponse)

    /// The head that a server or a proxy has sent; nil for other responses.
    var head: ResponseHead? {
        switch self {
        case .http(let head, _), .headAlone(let head): head
        case .other: nil
        }
    }

    /// The HTTP status; 0 for other responses.
    var status: Int {
        switch self {
        case .http(let head, _), .headAlone(let head): head.status
        case .other(let response): (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }

    /// Whether the status is 101 (Switching Protocols, RFC 9110 §15.2.2).
    var switchesProtocol: Bool { status == 101 }

    /// A sentence, if a proxy has refused to make a tunnel and wants a password; nil otherwise.
    var refusalOfTunnel: String? {
        guard case .headAlone(let head) = self else { return nil }
        return "The proxy makes no tunnel to the server: it answered \(head.status). It wants a user name "
            + "and password that it accepts: from its URL or settings (StreamProxy.userName), from the "
            + "delegate, or from the credential storage."
    }

    /// The response to `request` in the client's form; nil if Foundation cannot make one.
    func response(to request: LoadRequest) -> URLResponse? {
        switch self {
        case .http(let head, let bodyLength): Self.response(to: request, head, bodyLength: bodyLength)
        case .headAlone(let head): Self.response(to: request, head, bodyLength: 0)
        case .other(let response): response
        }
    }

    private static func response(
        to request: LoadRequest, _ head: ResponseHead, bodyLength: Int64?
    ) -> URLResponse? {
        guard let url = request.url else { return nil }
        // A remembered response must not contain a user's name and password.
        if request.address?.isPlain ?? false {
            return RecentResponses.response(to: url, head, bodyLength: bodyLength)
        }
        return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
    }
}
