internal import RondoStreams

/// The properties that two requests must have in common to share a connection: the server, the route to it
/// and its security.
///
/// A reference and a hash that is computed once: a request compares its key with those of kept connections.
struct ConnectionKey: Hashable, Sendable {
    private final class Values: Sendable {
        let server: Server
        let tls: TLSSettings?
        let proxy: StreamProxy?
        let connect: ConnectSettings?
        let hash: Int

        init(_ server: Server, _ tls: TLSSettings?, _ proxy: StreamProxy?, _ connect: ConnectSettings?) {
            self.server = server
            self.tls = tls
            self.proxy = proxy
            self.connect = connect
            var hasher = Hasher()
            hasher.combine(server)
            hasher.combine(tls)
            hasher.combine(proxy)
            hasher.combine(connect)
            hash = hasher.finalize()
        }

        func isEqual(to other: Values) -> Bool {
            hash == other.hash && server == other.server && tls == other.tls && proxy == other.proxy
                && connect == other.connect
        }
    }

    /// A server, or the proxy that gets the requests in its place: the unit for which limits count.
    struct Server: Hashable, Sendable {
        let host: String
        let port: Int
    }

    private let values: Values

    /// - Parameters:
    ///   - tls: Nil for plain HTTP.
    ///   - proxy: The proxy that gets the requests in the server's place; nil for none.
    ///   - connect: The settings that redirect the connection elsewhere, or choose its local address; nil if
    ///     none is set.
    init(
        host: String, port: Int, tls: TLSSettings?, proxy: StreamProxy? = nil, connect: ConnectSettings? = nil
    ) {
        values = Values(Server(host: host, port: port), tls, proxy, connect)
    }

    var server: Server { values.server }
    var host: String { values.server.host }
    var port: Int { values.server.port }
    var tls: TLSSettings? { values.tls }
    var proxy: StreamProxy? { values.proxy }

    static func == (left: ConnectionKey, right: ConnectionKey) -> Bool {
        left.values === right.values || left.values.isEqual(to: right.values)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(values.hash) }
}
