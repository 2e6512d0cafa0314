internal import RondoCore
internal import RondoStreams

internal import struct Synchronization.Atomic

/// Counts the waits of a pool with another priority than the usual one: only while there are any are the priorities of
/// waiting loads compared (rule US-39).
final class RankedWaits: Sendable {
    private let count = Atomic(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    fileprivate func change(from old: LoadRank, to new: LoadRank) {
        let change = (new.isNormal ? 0 : 1) - (old.isNormal ? 0 : 1)
        if change != 0 { count.wrappingAdd(change, ordering: .relaxed) }
    }
}

/// A request's wait for a lease, which ends when its origin admits it. Any thread may use it.
final class LeaseWait: Sendable {
    private let admitted = Atomic(false)
    private let rank: Atomic<UInt32>
    private let ranked: RankedWaits?
    private let wakeUp: @Sendable () -> Void

    /// - Parameters:
    ///   - ranked: Those of the pool, by which it knows whether priorities have to be compared.
    ///   - wakeUp: Called on any thread when the wait is over.
    init(priority: Float, in ranked: RankedWaits? = nil, wakeUp: @escaping @Sendable () -> Void) {
        rank = Atomic(LoadRank.normal.bits)
        self.ranked = ranked
        self.wakeUp = wakeUp
        self.priority = priority
    }

    deinit { priority = LoadRank.normal.priority }

    /// Ends the wait: its request has a lease from now on. Call it with no lock held.
    func admit() {
        admitted.store(true, ordering: .releasing)
        wakeUp()
    }

    var isAdmitted: Bool { admitted.load(ordering: .acquiring) }

    /// Waiters of higher priority go first.
    var priority: Float {
        get { LoadRank(bits: rank.load(ordering: .relaxed)).priority }
        set {
            let new = LoadRank(priority: newValue)
            let old = LoadRank(bits: rank.exchange(new.bits, ordering: .relaxed))
            ranked?.change(from: old, to: new)
        }
    }
}

/// Permission to use one connection to a server. It is ended once: by `end()`, or when it is dropped, or, after an exchange has
/// taken its connection, by `KeptConnection.endLease(keptFor:registeredAt:)` or a method of its origin: `endLease()`, or
/// `endLeaseOutsideServerCount()` if the connection has left HTTP.
struct Lease: ~Copyable {
    /// The connection of the lease.
    enum Connection {
        /// One that was idle.
        case kept(KeptConnection)
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
            connection.origin.endLease()
        case .new(let origin, _): origin.endLease()
        }
    }

    /// Ends the lease, and closes its idle connection, if it has one.
    consuming func end() {}

    /// Makes the exchange that takes the connection end the lease.
    consuming func passOn() { isHeld = false }
}
