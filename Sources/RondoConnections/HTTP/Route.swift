internal import RondoHTTP
internal import RondoStreams

/// Where a request's connection goes: to the server, or to a proxy.
struct Route: Sendable {
    let key: PoolKey
    let channel: SocketChannel.Configuration
    /// The request line names the whole URL, and proxy fields go with the request.
    let isForProxy: Bool
    /// What `OutgoingRequest.usualFields(_:)` has made for the server.
    var usualFields: HeaderFields?
}

extension Route {
    /// The direct way.
    init(to address: WebAddress, tls: TLSSettings?) {
        self.init(
            key: PoolKey(host: address.host, port: address.port, tls: tls),
            channel: .init(host: address.host, port: address.port, tls: tls), isForProxy: false,
            usualFields: OutgoingRequest.usualFields(address.authority))
    }

    /// The way by `proxy`: an http proxy is handed http requests whole (absolute-form, RFC 9112 §3.2.2) and makes a tunnel
    /// for https (RFC 9110 §9.3.6); a SOCKS proxy makes a tunnel for both. An https proxy is an http proxy that is spoken
    /// to by TLS, which the tunnel then goes through: TLS inside of TLS.
    ///
    /// - Parameter authorize: Gives the value of Proxy-Authorization for a CONNECT with that target, and what proves the
    ///   proxy's answer.
    init(
        to address: WebAddress, tls: TLSSettings?, by proxy: StreamProxy,
        authorize: (_ target: String) -> (String?, (session: DigestSession, answer: DigestSession.Answer)?)
    ) {
        let (host, port) = (address.host, address.port)
        if proxy.kind == .httpConnect, !address.isSecure {
            self.init(
                key: PoolKey(host: proxy.host, port: proxy.port, tls: proxy.tls, proxy: proxy),
                channel: .init(host: proxy.host, port: proxy.port, tls: proxy.tls), isForProxy: true)
            return
        }
        var way = proxy.route(toHost: host, port: port)
        if proxy.kind == .httpConnect {
            let (authorization, proof) = authorize("\(host):\(port)")
            way.negotiation = TunnelNegotiation(
                by: proxy, toHost: host, port: port, authorization: authorization, proof: proof)
        }
        self.init(
            key: PoolKey(host: host, port: port, tls: tls, proxy: proxy),
            channel: .init(host: host, port: port, tls: tls, route: way), isForProxy: false)
    }
}
