extension URLConnection {
    /// How many connections to servers may be in use at once, and how many are kept open for later requests.
    ///
    /// A load that finds no room waits, in order, and that time is not held against its timeout.
    ///
    /// A load that stands still because its mode does not run keeps its connection: with as many of them as one server
    /// has connections, other loads from there wait too.
    public struct Limits: Sendable, Hashable {
        var values: ConnectionLimits

        public init() { values = ConnectionLimits() }

        init(_ values: ConnectionLimits) { self.values = values }

        /// To one host and port, or to one proxy; 6 unless set, as browsers and `URLSession` have it. At least 1.
        public var connectionsPerServer: Int {
            get { values.connectionsPerServer }
            set { values.connectionsPerServer = newValue }
        }
        /// Other numbers for servers, or proxies, by "host:port". At least 1.
        public var exceptions: [String: Int] {
            get { values.exceptions }
            set { values.exceptions = newValue }
        }
        /// In all; 512 unless set, well below the 1,024 descriptors that a process may have open as a rule. At least 1.
        public var connections: Int {
            get { values.connections }
            set { values.connections = newValue }
        }
        /// Kept open to one server while no load uses them; 64 unless set. 0 keeps none.
        public var idleConnectionsPerServer: Int {
            get { values.idleConnectionsPerServer }
            set { values.idleConnectionsPerServer = newValue }
        }
        /// Kept open in all while no load uses them; beyond that the one that was used longest ago is closed. 256 unless
        /// set; 0 keeps none.
        public var idleConnections: Int {
            get { values.idleConnections }
            set { values.idleConnections = newValue }
        }
    }

    /// The limits of this process. Any thread.
    public static var limits: Limits {
        get { Limits(ConnectionPool.shared.limits) }
        set { ConnectionPool.shared.limits = newValue.values }
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
