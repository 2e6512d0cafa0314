internal import RondoCore

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

/// Permission to use one connection to a server, which counts as one in use until the lease ends. It ends once: by
/// `keep(registeredAt:)`, or when it is dropped, which closes its connection.
struct Lease: ~Copyable {
    /// How the connection is counted.
    private enum Count {
        /// Among those to its server, and among all.
        case atServer
        /// Among all only: it has left HTTP (rule WS-29).
        case inAll
        /// The lease has ended.
        case ended
    }

    /// The loop whose idle connections are taken first, and to which this one belongs when it is idle again.
    private let loop: RunLoop
    private let origin: Origin
    /// The connection as it was idle; nil if one is to be opened. The exchange sets the one that it uses.
    var connection: IdleConnection?
    private var count = Count.atServer

    /// - Parameter connection: One that was idle; nil if one is to be opened.
    init(of origin: Origin, loop: RunLoop, connection: IdleConnection?) {
        self.origin = origin
        self.loop = loop
        self.connection = connection
    }

    deinit {
        if count == .ended { return }
        if let connection {
            connection.unregister(unlessAt: nil)
            connection.close()
        }
        switch count {
        case .atServer: origin.endLease()
        case .inAll: origin.endLeaseOutsideServerCount()
        case .ended: break
        }
    }

    /// Ends the lease, and closes its connection, if it has one.
    consuming func end() {}

    /// Ends the lease and keeps its connection, which is ready for its next exchange.
    ///
    /// - Parameter queue: The queue with which the connection stays registered for now; the caller ensures that
    ///   `unregisterIfIdle()` is called soon. If nil, it leaves all loops now.
    consuming func keep(registeredAt queue: SharedQueue?) {
        guard case .ready(let connection) = connection else { return }
        count = .ended
        connection.noteUse(registeredAt: queue)
        origin.endLease(keeping: connection, of: loop)
    }

    /// Stops counting the connection among those to its server, because another protocol gets it. Do not keep it then.
    mutating func leaveServerCount() {
        count = .inAll
        origin.leaveServerCount()
    }
}
