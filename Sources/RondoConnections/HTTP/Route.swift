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
}
