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
    let origin: Origin
    let key: ConnectionKey
    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// The idle connection to use; nil if one is to be opened.
    let connection: ServerConnection?

    /// Ends the lease, and closes its idle connection, if it has one.
    consuming func end() {
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }
}
