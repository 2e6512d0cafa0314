internal import FoundationNetworking
internal import RondoHTTP

/// A response on its way to the delegate: the head that a server has sent, or what another answer has made.
enum IncomingResponse: Equatable {
    case http(ResponseHead, bodyLength: Int64?)
    case other(URLResponse)

    /// The HTTP status; 0 for other responses.
    var status: Int {
        switch self {
        case .http(let head, _): head.status
        case .other(let response): (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }

    /// The response to `request` in the client's form; nil if Foundation cannot make one.
    func response(to request: LoadRequest) -> URLResponse? {
        switch self {
        case .http(let head, let bodyLength):
            guard let url = request.url else { return nil }
            // A remembered response must not contain a user's name and password.
            if request.address?.isPlain ?? false {
                return RecentResponses.response(to: url, head, bodyLength: bodyLength)
            }
            return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
        case .other(let response): return response
        }
    }
}
