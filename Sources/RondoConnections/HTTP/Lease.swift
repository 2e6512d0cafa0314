internal import RondoCore
internal import RondoStreams

/// Told when there is room for the connection that it waits for.
protocol ConnectionWaiter: AnyObject, Sendable {
    /// On any thread, with no lock held. The waiter has a lease from now on.
    func isAdmitted(with ticket: Int)
}

/// The right to have one connection to a server in use. It is ended once.
struct Lease {
    let origin: Origin
    let key: ConnectionKey
    /// Whose idle connections are taken first, and to which this one belongs when it is idle again.
    let loop: RunLoop
    /// Nil: a connection is to be opened.
    let connection: ServerConnection?

    /// Ends it, and closes the idle connection that it was to go over.
    func end() {
        connection?.unregister(unlessAt: nil)
        connection?.channel.close()
        origin.endLease()
    }

    /// Ends it, and keeps `connection`, which is ready for its next exchange.
    ///
    /// - Parameter queue: Where the connection is registered and remains so for now; the caller sees to it that
    ///   `ServerConnection.leave()` is called soon. Nil: it leaves all loops now.
    func end(keeping connection: ServerConnection, registeredAt queue: SharedQueue?) {
        // It does not matter that the next exchange will want to read: it is in no loop, or no event is let in.
        connection.channel.wantsWrite = false
        if let queue { connection.noteRegistered(at: queue) } else { connection.channel.removeFromAllLoops() }
        origin.endLease(keeping: connection, of: loop)
    }
}
