internal import RondoCore
internal import RondoStreams

/// A waiter for a connection, which is told when it is admitted.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// Called on any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with waiterID: Int)

    /// Waiters of higher priority go first. Any thread reads it, under a lock.
    var priority: Float { get }
}

/// Permission to use one connection to a server. It is ended once: by `end()`, or when it is dropped, or, after an exchange has
/// taken its connection, by `ServerConnection.endLease()`.
struct Lease: ~Copyable {
    /// The connection of the lease.
    enum Connection {
        /// One that was idle.
        case kept(ServerConnection)
        /// One that is to be opened.
        case new(Origin, ConnectionKey)
    }

    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    let connection: Connection
    /// Whether the lease is ended by this value; false once an exchange ends it.
    private var isHeld = true

    init(loop: RunLoop, connection: Connection) {
        self.loop = loop
        self.connection = connection
    }

    deinit {
        guard isHeld else { return }
        switch connection {
        case .kept(let connection):
            connection.unregister(unlessAt: nil)
            connection.channel.close()
            connection.endLease()
        case .new(let origin, _): origin.endLease()
        }
    }

    /// Ends the lease, and closes its idle connection, if it has one.
    consuming func end() {}

    /// Makes the exchange that takes the connection end the lease.
    consuming func passOn() { isHeld = false }
}
