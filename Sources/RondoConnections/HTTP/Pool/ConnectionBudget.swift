internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// An origin as the budget sees it: it may have waiters that wait only for the limit on all connections of
/// the process.
protocol BudgetCandidate: AnyObject, Sendable {
    /// Admits its first waiter to a connection, if the budget still has room.
    ///
    /// - Returns: The ID of the next waiter that lacks nothing but room in the budget; nil if there is none.
    func admitFirst() -> Int?

    /// The group whose waiters are ranked among each other: the pool of the origin.
    var group: ObjectIdentifier { get }

    /// The waiter that goes first, by its rank; nil if all waiters of the group have the same rank. Called
    /// under the queue's lock.
    var topWaiter: RankedWaiter? { get }
}

/// A pool as the budget sees it: one of those whose idle connections it counts.
protocol BudgetPool: AnyObject, Sendable {
    /// The servers with idle connections, and the time since which the oldest one of each has been idle.
    var idleServers: [(server: ConnectionKey.Server, since: LoopInstant)] { get }

    /// Closes the oldest idle connection to `server`, unless it became idle after `since`.
    ///
    /// - Returns: The time since which the oldest of the others has been idle; nil if there is none.
    func closeOldest(to server: ConnectionKey.Server, idleSince since: LoopInstant) -> LoopInstant?

    /// Closes all its idle connections.
    func closeAll()
}

/// Counts the connections of all origins, in use and idle, against the limits of the process.
///
/// A request that reuses a connection changes one word, atomically. The queue, which has a lock, is used only
/// when the limit has been reached. It contains the origins whose waiters lack nothing but room, each once,
/// in the order in which they began to wait, and within a pool by their ranks.
final class ConnectionBudget: Sendable {
    struct Counts: Equatable {
        var inUse: Int
        var idle: Int

        fileprivate init(word: UInt64) {
            inUse = Int(word >> 32)
            idle = Int(word & 0xFFFF_FFFF)
        }
    }

    private struct WeakPool {
        weak var pool: (any BudgetPool)?
    }

    private static let oneInUse: UInt64 = 1 << 32
    private static let oneIdle: UInt64 = 1

    /// Connections in use in the upper half, idle ones in the lower one.
    private let word = Atomic<UInt64>(0)
    private let maximumInUse: Atomic<Int>
    private let maximumIdle: Atomic<Int>
    private let lastWaiterID = Atomic(0)
    private let queue = Mutex(BudgetQueue())
    /// The length of `queue`.
    private let queued = Atomic(0)
    private let pools = Mutex<[WeakPool]>([])
    /// The servers whose connections are closed next.
    private let evictionOrder = Mutex(EvictionOrder())

    init(_ limits: ConnectionLimits = ConnectionLimits()) {
        maximumInUse = Atomic(limits.connections)
        maximumIdle = Atomic(limits.idleConnections)
    }

    var counts: Counts { Counts(word: word.load(ordering: .sequentiallyConsistent)) }

    var isOverIdleLimit: Bool { counts.idle > maximumIdle.load(ordering: .relaxed) }

    /// Whether any connection may become idle.
    var keepsIdle: Bool { maximumIdle.load(ordering: .relaxed) > 0 }

    /// Counts one connection more in use, if there is room.
    ///
    /// - Parameters:
    ///   - fromIdle: Whether the connection was idle.
    ///   - isQueued: Whether it is for a waiter in the queue. If false, and there are such waiters, there is
    ///     no room.
    func take(fromIdle: Bool = false, isQueued: Bool = false) -> Bool {
        if !isQueued, hasQueue { return false }
        let maximum = UInt64(maximumInUse.load(ordering: .relaxed))
        var old = word.load(ordering: .relaxed)
        while old >> 32 < maximum {
            let new = old &+ Self.oneInUse &- (fromIdle ? Self.oneIdle : 0)
            let (isDone, found) = word.weakCompareExchange(
                expected: old, desired: new, ordering: .sequentiallyConsistent)
            if isDone { return true }
            old = found
        }
        return false
    }

    /// Counts one connection in use less.
    ///
    /// - Parameter toIdle: Whether the connection is idle from now on.
    func giveBack(toIdle: Bool) -> Counts {
        let change = Self.oneInUse &- (toIdle ? Self.oneIdle : 0)
        return Counts(word: word.wrappingSubtract(change, ordering: .sequentiallyConsistent).newValue)
    }

    /// Counts `count` idle connections less.
    func removeIdle(_ count: Int) {
        guard count > 0 else { return }
        word.wrappingSubtract(Self.oneIdle &* UInt64(count), ordering: .sequentiallyConsistent)
    }

    // MARK: Idle connections

    func add(_ pool: any BudgetPool) {
        pools.withLock { pools in
            pools.removeAll { $0.pool == nil }
            pools.append(WeakPool(pool: pool))
        }
    }

    /// Closes the connections that have been idle longest, of whatever pool, until there are no more than the
    /// limit.
    func closeSurplus() {
        while isOverIdleLimit, let oldest = popOldestIdle() {
            let (pool, server) = (oldest.pool, oldest.server)
            guard let since = pool?.closeOldest(to: server, idleSince: oldest.since) else { continue }
            evictionOrder.withLock { $0.add(EvictionOrder.Entry(pool: pool, server: server, since: since)) }
        }
    }

    /// The server whose idle connection is to be closed next. All origins are searched only if none is known,
    /// because most may have no idle connection.
    private func popOldestIdle() -> EvictionOrder.Entry? {
        if let known = evictionOrder.withLock({ $0.popOldest() }) { return known }
        let pools = pools.withLock { $0.compactMap(\.pool) }
        let found = pools.flatMap { pool in
            pool.idleServers.map { EvictionOrder.Entry(pool: pool, server: $0.server, since: $0.since) }
        }
        return evictionOrder.withLock { evictionOrder in
            evictionOrder.replace(by: found, at: LoopClock.systemNow)
            return evictionOrder.popOldest()
        }
    }

    /// Closes all idle connections, of whatever pool.
    func closeIdle() { for pool in pools.withLock({ $0.compactMap(\.pool) }) { pool.closeAll() } }

    // MARK: Waiters

    /// The next number in the order of the waiters of all origins.
    func nextWaiterID() -> Int { lastWaiterID.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: The queue

    var hasQueue: Bool { queued.load(ordering: .sequentiallyConsistent) > 0 }

    /// Adds `origin`, whose waiter lacks nothing but room in the budget. Call it with no lock held.
    func enqueue(_ origin: any BudgetCandidate, waiterID: Int) {
        insert(origin, waiterID: waiterID)
        // Another thread may have given room back before it could see this entry, and then has offered it to
        // no waiter.
        admit()
    }

    /// Admits the waiters for which there is room, in order. Call it with no lock held.
    func admit() {
        while counts.inUse < maximumInUse.load(ordering: .relaxed), let next = popFirst() {
            if let waiterID = next.admitFirst() { insert(next, waiterID: waiterID) }
        }
    }

    func setLimits(_ limits: ConnectionLimits) {
        maximumInUse.store(limits.connections, ordering: .sequentiallyConsistent)
        maximumIdle.store(limits.idleConnections, ordering: .relaxed)
        admit()
    }

    private func insert(_ origin: any BudgetCandidate, waiterID: Int) {
        queue.withLock { queue in
            queue.insert(origin, waiterID: waiterID)
            queued.store(queue.count, ordering: .sequentiallyConsistent)
        }
    }

    private func popFirst() -> (any BudgetCandidate)? {
        queue.withLock { queue in
            defer { queued.store(queue.count, ordering: .sequentiallyConsistent) }
            return queue.popFirst()
        }
    }
}
