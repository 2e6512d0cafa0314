/// How many connections to servers may be in use at once, and how many are kept open for later requests; see
/// `URLConnection.Limits`, which programs set.
struct ConnectionLimits: Sendable, Hashable {
    /// Connections to one server or proxy: as many as browsers and `URLSession` use
    /// (`httpMaximumConnectionsPerHost`).
    var connectionsPerServer = 6
    /// Other numbers for servers, or proxies, by "host:port".
    var exceptions: [String: Int] = [:]
    /// Connections in total: well below the 1,024 descriptors that a process usually may open.
    var connections = 512
    /// Idle connections to one server that are kept open.
    var idleConnectionsPerServer = 64
    /// Idle connections in total that are kept open.
    var idleConnections = 256

    /// How many connections to `server` may be in use.
    func connections(to server: ConnectionKey.Server) -> Int {
        if !exceptions.isEmpty, let exception = exceptions["\(server.host):\(server.port)"] {
            return max(1, exception)
        }
        return connectionsPerServer
    }

    /// The nearest limits that are possible: at least one connection has to be allowed.
    var clamped: ConnectionLimits {
        var limits = self
        limits.connections = max(1, connections)
        limits.connectionsPerServer = max(1, connectionsPerServer)
        limits.idleConnections = max(0, idleConnections)
        limits.idleConnectionsPerServer = max(0, idleConnectionsPerServer)
        return limits
    }
}
