internal import struct Synchronization.Atomic

/// The number of waiting loads of a pool whose priority is not normal.
///
/// While it is zero, the priorities of waiting loads are not compared (rule US-39).
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
    ///   - ranked: The pool's counter of waits with a priority that is not normal.
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

/// A waiter with the values that decide whether it goes before others of its group (rule US-39).
struct RankedWaiter: Comparable {
    let rank: Float
    let waiterID: Int

    /// Orders by rank, the highest first, then by waiting time, the longest first.
    static func < (left: RankedWaiter, right: RankedWaiter) -> Bool {
        left.rank == right.rank ? left.waiterID < right.waiterID : left.rank > right.rank
    }
}

/// The priority of a load that waits for a connection, as a number that an atomic can hold.
struct LoadRank {
    static let normal = LoadRank(priority: 0.5)

    let bits: UInt32

    init(priority: Float) { bits = priority.bitPattern }
    init(bits: UInt32) { self.bits = bits }

    var isNormal: Bool { bits == Self.normal.bits }

    var priority: Float { Float(bitPattern: bits) }
}
