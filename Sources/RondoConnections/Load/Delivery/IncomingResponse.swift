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
