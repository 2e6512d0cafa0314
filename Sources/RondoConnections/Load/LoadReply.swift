internal import FoundationNetworking
internal import RondoHTTP

/// What has been answered: by a server, or by another answer that has a response of its own.
enum LoadReply: Equatable {
    case http(ResponseHead, bodyLength: Int64?)
    case other(URLResponse)

    /// Zero where the response is none of HTTP.
    var status: Int {
        switch self {
        case .http(let head, _): head.status
        case .other(let response): (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }
}
