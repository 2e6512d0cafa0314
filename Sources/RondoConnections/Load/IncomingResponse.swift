internal import FoundationNetworking
internal import RondoHTTP

/// A response on its way to the delegate: the head that a server has sent, or what another answer has made.
enum IncomingResponse: Equatable {
    case http(ResponseHead, bodyLength: Int64?)
    case other(URLResponse)

    /// Zero for a response that is not HTTP's.
    var status: Int {
        switch self {
        case .http(let head, _): head.status
        case .other(let response): (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }
}
