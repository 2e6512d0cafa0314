/// The proxy through which a channel reaches its host, and the negotiation with it.
package struct ProxyRoute: Sendable {
    /// The proxy's host and port.
    package var host: String
    package var port: Int
    /// The TLS settings for the connection to the proxy itself; nil: plain text.
    package var tls: TLSSettings?
    /// The negotiation before its first step; each connection starts with a copy of it.
    package var negotiation: any ProxyNegotiation

    package init(
        host: String, port: Int, tls: TLSSettings? = nil, negotiation: any ProxyNegotiation
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.negotiation = negotiation
    }
}
