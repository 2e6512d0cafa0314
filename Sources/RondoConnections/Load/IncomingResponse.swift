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
}
