internal import RondoCore
internal import RondoStreams

internal import struct Synchronization.Atomic

/// A connection to a server, from before it is opened until it is closed. Exchanges use it one after the
/// other; `isReused` tells whether it has served one. It has a subclass for each version of HTTP, whose
/// exchange it makes.
///
/// While it is in use, only its exchange accesses it; while it is idle, only its origin does: under the
/// origin's lock, or after taking it out and before putting it back.
/// `registration` is atomic.
class ServerConnection: DeferredWork {
    final let channel: SocketChannel
    final let key: ConnectionKey
    final let origin: Origin
    /// See `ConnectionPool.renew()`.
    final let generation: Int
    /// Whether the connection has served a request before.
    final private(set) var isReused: Bool
    /// Whether no other load may use the connection: a delegate has accepted the server, or shown it an
    /// identity, or another protocol gets the connection.
    final private(set) var isPrivate = false
    /// The address of the shared queue with which the idle connection is still registered; 0 if there is
    /// none. The channel retains the queue meanwhile.
    private let registration = Atomic<UInt>(0)

    init(_ channel: SocketChannel, key: ConnectionKey, of origin: Origin, isReused: Bool) {
        self.channel = channel
        self.key = key
        self.origin = origin
        self.isReused = isReused
        generation = origin.generation
    }

    // MARK: Its use

    /// Makes an exchange of the connection's version for `owner`, which is not started yet. It ends the
    /// lease, which is of this connection.
    func makeExchange(
        over lease: consuming Lease, for owner: any ExchangeOwner, reporting: ExchangeReporting
    ) -> any Exchange {
        preconditionFailure("bug in Rondo: a connection of no version of HTTP")
    }

    final func makePrivate() { isPrivate = true }

    /// Notes that an exchange has ended, after which the connection is kept; for `Lease.keep(registeredAt:)`.
    final func noteUse(registeredAt queue: SharedQueue?) {
        isReused = true
        // The read interest can stay: the connection is in no loop, or no event is let in.
        channel.wantsWrite = false
        guard let queue else { return channel.removeFromAllLoops() }
        registration.store(UInt(bitPattern: ObjectIdentifier(queue)), ordering: .relaxed)
    }

    // MARK: Registered while idle

    /// Whether the connection is idle and registered with a loop's kernel set.
    final var isRegisteredIdle: Bool { registration.load(ordering: .relaxed) != 0 }

    /// - Returns: Whether the connection was registered as idle. It still is in the loop; the caller uses
    ///   that registration, or ends it.
    final func takeRegistration() -> Bool { registration.exchange(0, ordering: .relaxed) != 0 }

    /// Unregisters the connection, unless it is registered with `queue`, where it is to be used. Call it
    /// after taking the connection.
    final func unregister(unlessAt queue: SharedQueue?) {
        let registered = registration.load(ordering: .relaxed)
        if registered == 0 { return }
        if let queue, registered == UInt(bitPattern: ObjectIdentifier(queue)) { return }
        if takeRegistration() { channel.removeFromAllLoops() }
    }

    /// Unregisters the connection if it is still idle.
    final func unregisterIfIdle() { if isRegisteredIdle { origin.unregister(self) } }

    /// Unregisters the connection from the loop, with which it had stayed registered for the next request.
    final func performDeferredWork() -> Bool {
        unregisterIfIdle()
        return false
    }
}
