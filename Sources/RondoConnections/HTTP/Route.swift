internal import RondoCore
internal import RondoStreams

/// Where a request's connection goes.
struct Route: Sendable {
    let origin: Origin
    let key: ConnectionKey
    let channel: SocketChannel.Configuration
    /// The request line names the whole URL, and proxy fields go with the request.
    let isForProxy: Bool

    init(_ key: ConnectionKey, channel: SocketChannel.Configuration, isForProxy: Bool = false) {
        origin = ConnectionPool.shared.origin(of: key.server)
        self.key = key
        self.channel = channel
        self.isForProxy = isForProxy
    }

    /// The direct way.
    init(toHost host: String, port: Int, tls: TLSSettings?) {
        self.init(
            ConnectionKey(host: host, port: port, tls: tls), channel: .init(host: host, port: port, tls: tls))
    }
}

/// The direct ways that a loop's requests went last. Loop's thread only.
///
/// A request whose way is known here looks neither into the table of all origins, which has a lock, nor compares settings.
final class KnownRoutes {
    /// More are forgotten, the one that was made first before the others.
    static let maximum = 16

    private struct Known {
        /// Of the TLS settings; 0: plain HTTP.
        let settings: Int
        let route: Route
    }

    private var known: [Known] = []
    private var next = 0

    /// The direct way to a server.
    ///
    /// - Parameters:
    ///   - settings: A number that stands for the same `tls` each time; 0 without TLS.
    static func route(toHost host: String, port: Int, settings: Int, tls: @autoclosure () -> TLSSettings?)
        -> Route
    {
        guard let routes = RunLoop.stored(KnownRoutes.self, KnownRoutes.init) else {
            return Route(toHost: host, port: port, tls: tls())
        }
        if let route = routes.find(host, port, settings) { return route }
        let route = Route(toHost: host, port: port, tls: tls())
        routes.insert(Known(settings: settings, route: route))
        return route
    }

    private func find(_ host: String, _ port: Int, _ settings: Int) -> Route? {
        for index in known.indices where known[index].settings == settings {
            let key = known[index].route.key
            if key.port == port, key.host == host { return known[index].route }
        }
        return nil
    }

    private func insert(_ new: Known) {
        if known.count < Self.maximum { return known.append(new) }
        known[next] = new
        next = (next + 1) % Self.maximum
    }
}
