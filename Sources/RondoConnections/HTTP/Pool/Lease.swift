internal import RondoCore

/// Permission to use one connection to a server, which counts as one in use until the lease ends. It ends
/// once: by `keep(registeredAt:)`, or when it is dropped, which closes its connection.
struct Lease: ~Copyable {
    /// How the connection is counted.
    private enum Count {
        /// Among those to its server, and among all.
        case atServer
        /// Among all only: it has left HTTP (rule WS-29).
        case inAll
        /// The lease has ended.
        case ended
    }

    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    private let loop: RunLoop
    private let origin: Origin
    /// The connection as it was idle; nil if one is to be opened. `Route.makeExchange` sets the one that is
    /// used.
    var connection: PooledConnection?
    private var count = Count.atServer

    /// - Parameter connection: One that was idle; nil if one is to be opened.
    init(of origin: Origin, loop: RunLoop, connection: PooledConnection?) {
        self.origin = origin
        self.loop = loop
        self.connection = connection
    }

    deinit {
        if count == .ended { return }
        if let connection {
            connection.unregister(unlessAt: nil)
            connection.close()
        }
        switch count {
        case .atServer: origin.endLease()
        case .inAll: origin.endLeaseOutsideServerCount()
        case .ended: break
        }
    }

    /// Ends the lease, and closes its connection, if it has one.
    consuming func end() {}

    /// Ends the lease and keeps its connection, which is ready for its next exchange.
    ///
    /// - Parameter queue: The queue with which the connection stays registered for now; the caller ensures
    ///   that `unregisterIfIdle()` is called soon. If nil, it leaves all loops now.
    consuming func keep(registeredAt queue: SharedQueue?) {
        guard case .ready(let connection) = connection else { return }
        count = .ended
        connection.noteUse(registeredAt: queue)
        origin.endLease(keeping: connection, of: loop)
    }

    /// Stops counting the connection among those to its server, because another protocol gets it. Do not keep
    /// it then.
    mutating func leaveServerCount() {
        count = .inAll
        origin.leaveServerCount()
    }
}
