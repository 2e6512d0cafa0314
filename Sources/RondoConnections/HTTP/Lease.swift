internal import RondoCore
internal import RondoStreams

/// A waiter for a connection, which is told when it is admitted.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// Called on any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with waiterID: Int)

    /// Waiters of higher priority go first. Any thread reads it, under a lock.
    var priority: Float { get }
}

/// Permission to use one connection to a server. It must be ended once: by `end()`, or, after an exchange has taken its
/// connection, by `ServerConnection.endLease()`.
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

    /// Ends the lease, and closes its idle connection, if it has one.
    consuming func end() {
        switch connection {
        case .kept(let connection):
            connection.unregister(unlessAt: nil)
            connection.channel.close()
            connection.endLease()
        case .new(let origin, _): origin.endLease()
        }
    }
}
