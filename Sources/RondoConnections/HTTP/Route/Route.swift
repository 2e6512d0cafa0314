internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The route of a request: the server or proxy to connect to, and how.
///
/// An immutable reference, because it is passed on at each step of a request.
final class Route: Sendable {
    let origin: Origin
    let key: ConnectionKey
    let channel: SocketChannel.Configuration
    /// Whether the request goes to a proxy as it is: its request line has the whole URL, and it has proxy
    /// fields.
    let isForProxy: Bool

    /// The result of `OutgoingRequest.usualFields(_:)` for the server.
    let usualFields: HeaderFields?

    init(
        _ key: ConnectionKey, of pool: ConnectionPool, channel: SocketChannel.Configuration,
        isForProxy: Bool = false, usualFields: HeaderFields? = nil
    ) {
        self.usualFields = usualFields
        origin = pool.findOrMakeOrigin(of: key.server)
        self.key = key
        self.channel = channel
        self.isForProxy = isForProxy
    }

    /// Makes an exchange for `owner`, which is not started yet. It ends the lease.
    ///
    /// A connection makes the exchange of its version. The version of a new connection is decided here: the
    /// route offers nothing but `http/1.1` by ALPN (`tls(of:)`), so that the version is known before a
    /// channel is open. (For a route that offers another version too see "Adding HTTP/2" in CONTRIBUTING.) A
    /// parked connection is a plain socket, which speaks HTTP/1.1.
    func makeExchange(
        over lease: consuming Lease, for owner: any ExchangeOwner, reporting: ExchangeReporting
    ) -> any Exchange {
        let connection: ServerConnection
        switch lease.connection {
        case .ready(let kept): return kept.makeExchange(over: lease, for: owner, reporting: reporting)
        case .parked(let socket): connection = HTTP1Connection(resuming: socket, for: key, of: origin)
        case nil: connection = HTTP1Connection(SocketChannel(channel), key: key, of: origin)
        }
        // In place of the socket that was parked: the connection owns it now.
        lease.connection = .ready(connection)
        return connection.makeExchange(over: lease, for: owner, reporting: reporting)
    }

    /// The TLS settings of a route's connections: those of the protocols of `settings` remain (ALPN) for
    /// which `makeExchange` has an exchange. A caller that uses them for several requests keeps them, because
    /// they can be a copy.
    static func tls(of settings: TLSSettings) -> TLSSettings { settings.forHTTP1 }

    /// How connections are established.
    struct Options {
        var connect: ConnectSettings?
        /// In seconds.
        var timeout: TimeInterval?
        /// The fields sent to a proxy that is asked for a tunnel, besides Host and Proxy-Authorization.
        var tunnelFields: [(name: String, value: String)] = []

        func apply(to channel: inout SocketChannel.Configuration) {
            channel.connect = connect
            channel.openingLimit = timeout
        }
    }

    /// The direct route.
    ///
    /// - Parameter tls: From `tls(of:)`.
    convenience init(
        to address: WebAddress, of pool: ConnectionPool, tls: TLSSettings?, _ options: Options = Options()
    ) {
        var channel = SocketChannel.Configuration(host: address.host, port: address.port, tls: tls)
        options.apply(to: &channel)
        self.init(
            ConnectionKey(host: address.host, port: address.port, tls: tls, connect: options.connect),
            of: pool,
            channel: channel, usualFields: OutgoingRequest.usualFields(address.authority))
    }

    /// The route through `proxy`: an http proxy forwards http requests (absolute-form, RFC 9112 §3.2.2) and
    /// makes a tunnel for https (RFC 9110 §9.3.6); a SOCKS proxy makes a tunnel for both. An https proxy is
    /// an http proxy that is reached over TLS, and a tunnel goes through that: TLS inside TLS.
    ///
    /// - Parameters:
    ///   - tunnels: Whether an http proxy makes a tunnel for http URLs too.
    ///   - authorize: Returns, for a CONNECT with that target, the value of Proxy-Authorization, and the
    ///     values by which the proxy's response is checked.
    convenience init(
        to address: WebAddress, of pool: ConnectionPool, tls: TLSSettings?, by proxy: StreamProxy,
        _ options: Options = Options(), tunnels: Bool = false,
        authorize: (_ target: String) -> (
            [UInt8]?, (session: DigestSession, authorization: DigestSession.Authorization)?
        )
    ) {
        let (host, port) = (address.host, address.port)
        if proxy.kind == .httpConnect, !address.isSecure, !tunnels {
            let tlsToProxy = proxy.tls.map { Route.tls(of: $0) }
            var channel = SocketChannel.Configuration(host: proxy.host, port: proxy.port, tls: tlsToProxy)
            // Detours apply to the hosts of URLs only.
            var toProxy = options
            toProxy.connect?.detours = []
            toProxy.apply(to: &channel)
            self.init(
                ConnectionKey(
                    host: proxy.host, port: proxy.port, tls: tlsToProxy, proxy: proxy,
                    connect: options.connect),
                of: pool, channel: channel, isForProxy: true)
            return
        }
        var route = proxy.route(toHost: host, port: port)
        if proxy.kind == .httpConnect {
            let (authorization, proof) = authorize(TunnelNegotiation.authority(ofHost: host, port: port))
            route.negotiation = TunnelNegotiation(
                by: proxy, toHost: host, port: port, authorization: authorization,
                fields: options.tunnelFields, proof: proof)
        }
        var channel = SocketChannel.Configuration(host: host, port: port, tls: tls, route: route)
        options.apply(to: &channel)
        self.init(
            ConnectionKey(host: host, port: port, tls: tls, proxy: proxy, connect: options.connect),
            of: pool,
            channel: channel)
    }
}
