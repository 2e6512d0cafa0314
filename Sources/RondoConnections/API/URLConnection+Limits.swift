extension URLConnection {
    /// How many connections to servers may be in use at once, and how many are kept open for later requests.
    ///
    /// A load that finds no room waits, in order, and that time is not held against its timeout.
    ///
    /// A load that stands still because its mode does not run keeps its connection.
    public struct Limits: Sendable, Hashable {
        /// To one host and port, or to one proxy. At least 1.
        public var connectionsPerServer = 256
        /// Other numbers for servers, or proxies, by "host:port". At least 1.
        public var exceptions: [String: Int] = [:]
        /// In all: well below the 1,024 descriptors that a process may have open as a rule. At least 1.
        public var connections = 512
        /// Kept open to one server while no load uses them. 0 keeps none.
        public var idleConnectionsPerServer = 64
        /// Kept open in all while no load uses them; beyond that the one that was used longest ago is closed.
        /// 0 keeps none.
        public var idleConnections = 256

        public init() {}
    }

    /// The limits of this process. Any thread.
    public static var limits: Limits {
        get { Limits(ConnectionPool.shared.limits) }
        set { ConnectionPool.shared.limits = ConnectionLimits(newValue) }
    }

    /// Closes the connections to servers that are kept open for later requests and serve none now. Any
    /// thread.
    ///
    /// Each is closed by itself after 55 s without use, and soon after its server has closed it: a program that
    /// will load nothing for long may call this before.
    public static func closeIdleConnections() {
        ConnectionPool.shared.closeAll()
    }
}

extension URLConnection.Limits {
    fileprivate init(_ limits: ConnectionLimits) {
        connectionsPerServer = limits.connectionsPerServer
        exceptions = limits.exceptions
        connections = limits.connections
        idleConnectionsPerServer = limits.idleConnectionsPerServer
        idleConnections = limits.idleConnections
    }
}

extension ConnectionLimits {
    fileprivate init(_ limits: URLConnection.Limits) {
        connectionsPerServer = limits.connectionsPerServer
        exceptions = limits.exceptions
        connections = limits.connections
        idleConnectionsPerServer = limits.idleConnectionsPerServer
        idleConnections = limits.idleConnections
    }
}
