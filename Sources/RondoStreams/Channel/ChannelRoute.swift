/// The way to a host by another one: where the connection goes first, and the negotiation there.
package struct ChannelRoute: Sendable {
    /// The proxy's host and port.
    package var host: String
    package var port: Int
    /// How the proxy itself is spoken to; nil: in plain text.
    package var tls: TLSSettings?
    /// As it is before its first step; each connection begins with a copy of it.
    package var negotiation: any ChannelNegotiation

    package init(
        host: String, port: Int, tls: TLSSettings? = nil, negotiation: any ChannelNegotiation
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.negotiation = negotiation
    }
}
