internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams
internal import Synchronization

/// The settings of a load, as `URLConnection.Configuration` gives them.
///
/// A reference: most loads share one, and to read one value of it copies no other.
final class LoadSettings: Sendable {
    struct Values: Sendable {
        var tls = TLSSettings()
        var proxy = ProxySelection.environment
        /// Names of fields that are not added to a request.
        var omittedFields: [String] = []
        /// What the loads' cookies come from; nil: none are sent or kept.
        var cookieStore: CookieStore?
        /// Where responses are kept; nil: nowhere. The shared cache may be another one at the next request.
        var store: @Sendable () -> (any ResponseStore)?
        var contentLimits = RondoHTTP.ContentLimits()
        /// In seconds.
        var goAheadTimeout: TimeInterval = 1
        /// Is told of the steps of exchanges.
        var onStep: (@Sendable (ExchangeStep) -> Void)?
        /// Loads a request by itself to bring up to date what the cache holds (RFC 5861 §3), with these settings.
        var refresh: @Sendable (URLRequest, Values) -> Void
    }

    let values: Values
    /// Without what is meant for the origin that a load begins at; nil: there is nothing of the kind.
    private let tlsElsewhere: TLSSettings?
    private let directRoutes = Mutex<[DirectRoute: Route]>([:])

    // Of `values.proxy`, which takes longer to look at than all else about a direct way.
    private let namesProxy: Bool
    private let asksEnvironment: Bool

    init(_ values: Values) {
        self.values = values
        tlsElsewhere = values.tls.elsewhere
        isForOneOrigin = tlsElsewhere != nil
        (namesProxy, asksEnvironment) =
            switch values.proxy {
            case .direct: (false, false)
            case .by: (true, false)
            case .environment: (false, true)
            }
    }

    /// Requests go by no proxy, whatever their hosts.
    var isDirect: Bool { !namesProxy && (!asksEnvironment || ProxyEnvironment.process.isEmpty) }

    /// Whether the way depends on the origin that a load began at.
    let isForOneOrigin: Bool

    /// What a secured connection to a server speaks.
    func tls(atOrigin: Bool) -> TLSSettings { atOrigin ? values.tls : tlsElsewhere ?? values.tls }

    // MARK: Direct routes

    private struct DirectRoute: Hashable {
        let isSecure: Bool
        let atOrigin: Bool
        let authority: String
    }

    /// Servers whose routes are remembered; beyond that all are forgotten.
    private static let maximumRoutes = 64

    /// The direct way to `address`. To make one, with the hash by which connections are found, takes longer than to find
    /// it here.
    func directRoute(to address: WebAddress, atOrigin: Bool) -> Route {
        let server = DirectRoute(
            isSecure: address.isSecure, atOrigin: atOrigin, authority: address.authority)
        return directRoutes.withLock { routes in
            if let known = routes[server] { return known }
            if routes.count >= Self.maximumRoutes { routes = [:] }
            let route = Route(to: address, tls: address.isSecure ? tls(atOrigin: atOrigin) : nil)
            routes[server] = route
            return route
        }
    }
}
