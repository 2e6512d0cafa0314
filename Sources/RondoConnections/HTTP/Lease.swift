internal import RondoCore
internal import RondoStreams

/// A waiter for a connection, which is told when it is admitted.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// Called on any thread, with no lock held. The waiter has a lease from now on.
    func noteAdmission(_ waiterID: Int)

    /// Waiters of higher priority go first. Any thread reads it, under a lock.
    var priority: Float { get }
}

/// The right to have one connection to a server in use. It is ended once: here, or, once an exchange has its connection, by
/// that (`ServerConnection.endLease()`).
struct Lease: ~Copyable {
    let origin: Origin
    let key: ConnectionKey
    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// The idle connection to use; nil if one is to be opened.
    let connection: ServerConnection?

    /// Ends it, and closes the idle connection that it was to go over.
    consuming func end() {
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }
}
