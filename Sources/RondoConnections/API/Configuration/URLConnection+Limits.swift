extension URLConnection {
    /// The maximum numbers of connections to servers that are in use at once, and that are kept open for
    /// later requests.
    ///
    /// A load that finds no free connection waits in a queue, and that time does not count towards its
    /// timeout.
    ///
    /// A load whose mode does not run keeps its connection: if such loads hold all connections to a server,
    /// other loads from that server wait too.
    public struct Limits: Sendable, Hashable {
        var values: ConnectionLimits

        public init() { values = ConnectionLimits() }

        init(_ values: ConnectionLimits) { self.values = values }

        /// The maximum to one host and port, or to one proxy; 6 unless set, as in browsers and `URLSession`.
        /// At least 1.
        public var connectionsPerServer: Int {
            get { values.connectionsPerServer }
            set { values.connectionsPerServer = newValue }
        }
        /// Other maxima for particular servers or proxies, by "host:port". At least 1.
        public var exceptions: [String: Int] {
            get { values.exceptions }
            set { values.exceptions = newValue }
        }
        /// The maximum in total; 512 unless set, well below the 1,024 descriptors that a process usually may
        /// open. At least 1.
        public var connections: Int {
            get { values.connections }
            set { values.connections = newValue }
        }
        /// The maximum kept open to one server while no load uses them; 64 unless set. 0 keeps none.
        public var idleConnectionsPerServer: Int {
            get { values.idleConnectionsPerServer }
            set { values.idleConnectionsPerServer = newValue }
        }
        /// The maximum kept open in total while no load uses them; beyond it the least recently used one is
        /// closed. 256 unless set; 0 keeps none. All are closed where a new connection finds no descriptor
        /// left.
        public var idleConnections: Int {
            get { values.idleConnections }
            set { values.idleConnections = newValue }
        }
    }

    /// The limits of this process. Any thread may use it.
    public static var limits: Limits {
        get { Limits(ConnectionPool.shared.limits) }
        set { ConnectionPool.shared.limits = newValue.values }
    }

    /// Closes the connections to servers that are kept open for later requests and serve none now. Any thread
    /// may call it.
    ///
    /// Each connection is also closed after 55 s without use, and soon after its server has closed it: a
    /// program that will load nothing for a long time may call this earlier.
    public static func closeIdleConnections() {
        ConnectionPool.shared.closeAll()
    }
}
