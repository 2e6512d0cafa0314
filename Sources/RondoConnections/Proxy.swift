internal import FoundationNetworking
internal import RondoCore

/// A proxy that a connection goes by.
struct Proxy: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// Requests are sent to it whole; for https it makes a tunnel (RFC 9110 §9.3.6).
        case http
        /// SOCKS 5; `resolvesNames`: the proxy looks names up.
        case socks(resolvesNames: Bool)
    }

    let kind: Kind
    let host: String
    let port: Int
    var user: String?
    var password: String?

    /// Of the proxy's URL, or of the program's settings.
    var credential: URLCredential? {
        user.map { URLCredential(user: $0, password: password ?? "", persistence: .none) }
    }
}
