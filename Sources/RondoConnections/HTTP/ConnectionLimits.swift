/// How many connections may be in use and idle; `URLConnection.Limits` documents the numbers.
struct ConnectionLimits: Sendable, Equatable {
    var connectionsPerServer = 256
    /// By "host:port".
    var exceptions: [String: Int] = [:]
    var connections = 512
    var idleConnectionsPerServer = 64
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
