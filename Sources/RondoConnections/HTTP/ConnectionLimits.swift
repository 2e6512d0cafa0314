/// How many connections to servers may be in use at once, and how many are kept open for later requests; see
/// `URLConnection.Limits`, which programs set.
struct ConnectionLimits: Sendable, Hashable {
    /// To one server, or to one proxy.
    var connectionsPerServer = 256
    /// Other numbers for servers, or proxies, by "host:port".
    var exceptions: [String: Int] = [:]
    /// In all: well below the 1,024 descriptors that a process may have open as a rule.
    var connections = 512
    /// Kept open to one server while no load uses them.
    var idleConnectionsPerServer = 64
    /// Kept open in all while no load uses them.
    var idleConnections = 256
}
