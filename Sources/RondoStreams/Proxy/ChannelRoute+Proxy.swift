// How each kind of proxy is spoken to. It stands here and not with `StreamProxy`, which the negotiations know.
extension StreamProxy {
    /// The way through this proxy to a host.
    package func route(toHost host: String, port: Int) -> ChannelRoute {
        let destination = ProxyDestination(host: host, port: port, proxy: self)
        let negotiation: any ChannelNegotiation =
            switch kind.dialect {
            case .socks4: SOCKS4Negotiation(to: destination)
            case .socks5: SOCKS5Negotiation(to: destination)
            case .httpConnect: ConnectNegotiation(to: destination)
            }
        return ChannelRoute(host: self.host, port: self.port, tls: tls, negotiation: negotiation)
    }
}
