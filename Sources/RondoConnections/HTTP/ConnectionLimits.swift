/// How many connections to servers may be in use at once, and how many are kept open for later requests; see
/// `URLConnection.Limits`, which programs set.
struct ConnectionLimits: Sendable, Hashable {
    /// To one server, or to one proxy. As browsers, and as `URLSession` (`httpMaximumConnectionsPerHost`).
    var connectionsPerServer = 6
    /// Other numbers for servers, or proxies, by "host:port".
    var exceptions: [String: Int] = [:]
    /// In total: well below the 1,024 descriptors that a process usually may open.
    var connections = 512
    /// Kept open to one server while no load uses them.
    var idleConnectionsPerServer = 64
    /// Kept open in all while no load uses them.
    var idleConnections = 256

    /// How many connections to `server` may be in use.
    func connections(to server: ConnectionKey.Server) -> Int {
        if !exceptions.isEmpty, let exception = exceptions["\(server.host):\(server.port)"] {
            return max(1, exception)
        }
        return connectionsPerServer
    }

    /// The nearest ones that can be kept to: at least one connection has to be allowed.
    var clamped: ConnectionLimits {
        var limits = self
        limits.connections = max(1, connections)
        limits.connectionsPerServer = max(1, connectionsPerServer)
        limits.idleConnections = max(0, idleConnections)
        limits.idleConnectionsPerServer = max(0, idleConnectionsPerServer)
        return limits
    }
}
