internal import RondoCore
internal import RondoStreams

/// Told when there is room for the connection that it waits for.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// On any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with waiterID: Int)

    /// Of several that wait those of a higher one go first. Any thread, under a lock.
    var priority: Float { get }
}

/// The right to have one connection to a server in use. It is ended once: here, or, once an exchange has its connection, by
/// that (`ServerConnection.endLease()`).
struct Lease: ~Copyable {
    let origin: Origin
    let key: ConnectionKey
    /// Whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// Nil: a connection is to be opened.
    let connection: ServerConnection?

    /// Ends it, and closes the idle connection that it was to go over.
    consuming func end() {
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }
}
