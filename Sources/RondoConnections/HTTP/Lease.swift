internal import RondoCore
internal import RondoStreams

/// A waiter for a connection, which is told when it is admitted.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// Called on any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with waiterID: Int)

    /// Waiters of higher priority go first. Any thread reads it, under a lock.
    var priority: Float { get }
}

/// The right to have one connection to a server in use. It is ended once: here, at the latest when it is dropped, or, once an
/// exchange has its connection, by that (`ServerConnection.endLease()`).
struct Lease: ~Copyable {
    let origin: Origin
    let key: ConnectionKey
    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// The idle connection to use; nil if one is to be opened.
    let connection: ServerConnection?
    /// No exchange ends it.
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

    /// Ends it, and closes the idle connection that it was to go over.
    consuming func end() {}

    /// Leaves it to an exchange to end it.
    consuming func passOn() { isHeld = false }
}
