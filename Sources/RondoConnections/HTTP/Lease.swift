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
    let origin: Origin
    let key: ConnectionKey
    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// The idle connection to use; nil if one is to be opened.
    let connection: ServerConnection?
    /// Whether the lease is ended by this value; false once an exchange ends it.
    private var isHeld = true

    init(origin: Origin, key: ConnectionKey, loop: RunLoop, connection: ServerConnection?) {
        self.origin = origin
        self.key = key
        self.loop = loop
        self.connection = connection
    }

    deinit {
        guard isHeld else { return }
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }

    /// Ends the lease, and closes its idle connection, if it has one.
    consuming func end() {}

    /// Makes the exchange that takes the connection end the lease.
    consuming func passOn() { isHeld = false }
}
