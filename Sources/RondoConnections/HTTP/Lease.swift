internal import RondoCore
internal import RondoStreams

/// A waiter for a connection, which is told when it is admitted.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// Called on any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with waiterID: Int)

    /// Waiters of higher priority go first. Any thread reads it, under a lock.
    var priority: Float { get }
}

/// The right to use one connection to a server. It has to be ended once: by `end()` or, if an exchange has
/// its connection, by the exchange (`ServerConnection.endLease()`).
struct Lease {
    let origin: Origin
    let key: ConnectionKey
    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// The idle connection to use; nil if one is to be opened.
    let connection: ServerConnection?

    /// Ends the lease, and closes its idle connection.
    func end() {
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }
}
