internal import RondoCore
internal import RondoStreams

internal import struct Synchronization.Atomic

/// A request's wait for a lease, which ends when its origin admits it. Any thread may use it.
final class LeaseWait: Sendable {
    private let admitted = Atomic(false)
    private let rank: Atomic<UInt32>
    private let wakeUp: @Sendable () -> Void

    /// - Parameter wakeUp: Called on any thread when the wait is over.
    init(priority: Float, wakeUp: @escaping @Sendable () -> Void) {
        rank = Atomic(LoadRank(priority: priority).bits)
        self.wakeUp = wakeUp
    }

    /// Ends the wait: its request has a lease from now on. Call it with no lock held.
    func admit() {
        admitted.store(true, ordering: .releasing)
        wakeUp()
    }

    var isAdmitted: Bool { admitted.load(ordering: .acquiring) }

    /// Waiters of higher priority go first.
    var priority: Float {
        get { LoadRank(bits: rank.load(ordering: .relaxed)).priority }
        set { rank.store(LoadRank(priority: newValue).bits, ordering: .relaxed) }
    }
}

/// Permission to use one connection to a server. It is ended once: by `end()`, or when it is dropped, or, after an exchange has
/// taken its connection, by a method of `HTTP1Connection`: `endLease(keptFor:registeredAt:)`, `endLease()`, or
/// `endUpgradedLease()` if the connection has left HTTP.
struct Lease: ~Copyable {
    /// The connection of the lease.
    enum Connection {
        /// One that was idle.
        case kept(HTTP1Connection)
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
