// The negotiation for each kind of proxy. Not in `StreamProxy`'s own file, because the negotiations use that
// type.
extension StreamProxy {
    /// The route through this proxy to a host.
    package func route(toHost host: String, port: Int) -> ProxyRoute {
        let destination = ProxyDestination(host: host, port: port, proxy: self)
        let negotiation: any ProxyNegotiation =
            switch kind.dialect {
            case .socks4: SOCKS4Negotiation(to: destination)
            case .socks5: SOCKS5Negotiation(to: destination)
            case .httpConnect: ConnectNegotiation(to: destination)
            }
        return ProxyRoute(host: self.host, port: self.port, tls: tls?.forHTTP1, negotiation: negotiation)
    }
}
