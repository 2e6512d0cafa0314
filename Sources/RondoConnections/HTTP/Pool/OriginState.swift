internal import RondoCore

/// The connections of one server as a value: how many are in use, which are idle, and which loads wait for
/// one.
struct OriginState<Connection, Waiter>: ~Copyable {
    /// The decision about a request for a connection.
    enum Decision {
        /// An idle connection is used again.
        case reuse(Connection)
        /// A connection is to be opened.
        case open
        /// There is no room; the waiter is admitted later, by this number.
        ///
        /// `lacksBudget`: The server's limit has room, but the process's has none: the origin has to enter
        /// the budget's queue.
        case wait(Waiter, waiterID: Int, lacksBudget: Bool)
    }

    /// The maximum of connections in use.
    private(set) var limit: Int
    private(set) var idleLimit: Int
    private(set) var inUse = 0
    /// By their IDs, in whose order they came.
    private var waiting = KeyedQueue<Int, Waiter>()
    /// Also changed by `Origin`, which closes and parks idle connections, which changes no decision of this
    /// type.
    var idle = IdleConnections<Connection>()

    init(limit: Int, idleLimit: Int) {
        self.limit = limit
        self.idleLimit = idleLimit
    }

    /// Whether there are no connections and no waiters.
    var isUnused: Bool { inUse == 0 && waiting.isEmpty && idle.isEmpty }

    // MARK: Leases

    /// Decides how a request gets a connection. (Of connections that requests share, one with a stream to
    /// spare would be chosen first, before any limit: it counts as in use already.)
    ///
    /// - Parameters:
    ///   - waiter: Made if there is no room.
    ///   - mayReuse: False if the connection has to be a new one.
    ///   - isUsable: Excludes idle connections; nil for none.
    mutating func lease(
        _ key: ConnectionKey, of loop: ObjectIdentifier?, for waiter: @autoclosure () -> Waiter,
        within budget: ConnectionBudget,
        mayReuse: Bool, where isUsable: ((Connection) -> Bool)? = nil
    ) -> Decision {
        // A later request does not overtake waiters.
        guard waiting.isEmpty, inUse < limit else {
            return wait(waiter(), lacksBudget: false, within: budget)
        }
        let position = mayReuse ? idle.choose(for: key, of: loop, where: isUsable) : nil
        guard budget.take(fromIdle: position != nil) else {
            return wait(waiter(), lacksBudget: true, within: budget)
        }
        inUse += 1
        guard let position else { return .open }
        return .reuse(idle.remove(at: position))
    }

    /// Takes an idle connection for a lease that has none.
    mutating func takeIdle(
        _ key: ConnectionKey, of loop: ObjectIdentifier?, within budget: ConnectionBudget,
        where isUsable: ((Connection) -> Bool)? = nil
    ) -> Connection? {
        guard let position = idle.choose(for: key, of: loop, where: isUsable) else { return nil }
        budget.removeIdle(1)
        return idle.remove(at: position)
    }

    /// Counts one connection in use less.
    mutating func endLease() {
        precondition(inUse > 0, "bug in Rondo: no connection is in use")
        inUse -= 1
    }

    // MARK: Idle connections

    /// Keeps a connection, which the budget has counted as idle.
    ///
    /// - Returns: The connections that are not kept any longer: too old, or too many.
    mutating func keep(
        _ connection: Connection, for key: ConnectionKey, of loop: ObjectIdentifier?, now: LoopInstant,
        within budget: ConnectionBudget
    ) -> [Connection] {
        idle.add(connection, for: key, of: loop, now: now)
        guard idle.count > idleLimit else { return removeExpired(now: now, within: budget) }
        let dropped = idle.shrink(to: idleLimit)
        budget.removeIdle(dropped.count)
        return dropped + removeExpired(now: now, within: budget)
    }

    /// Removes the idle connections that are too old.
    mutating func removeExpired(now: LoopInstant, within budget: ConnectionBudget) -> [Connection] {
        let expired = idle.removeExpired(now: now)
        budget.removeIdle(expired.count)
        return expired
    }

    // MARK: Waiters

    var hasWaiters: Bool { !waiting.isEmpty }

    /// The ID of the first waiter, if the server's limit allows one more connection.
    var admissibleWaiterID: Int? { inUse < limit ? waiting.firstKey : nil }

    /// Admits a waiter to a connection.
    ///
    /// - Parameters:
    ///   - isQueued: Whether the origin is the first in the budget's queue.
    ///   - rank: Returns a waiter's rank: the first of the highest rank is admitted; nil if all have the
    ///     same.
    /// - Returns: Nil if there is no waiter, or no room.
    mutating func admit(
        within budget: ConnectionBudget, isQueued: Bool = false, rank: ((Waiter) -> Float)? = nil
    ) -> Waiter? {
        guard inUse < limit, !waiting.isEmpty, budget.take(isQueued: isQueued) else { return nil }
        inUse += 1
        guard let rank, let top = topWaiter(by: rank) else { return waiting.popFirst() }
        return waiting.remove(top.waiterID)
    }

    /// The first waiter of the highest rank. It is looked for among all of them, because ranks change while
    /// loads wait.
    func topWaiter(by rank: (Waiter) -> Float) -> RankedWaiter? {
        var top: RankedWaiter?
        waiting.forEach { waiterID, waiter in
            let other = RankedWaiter(rank: rank(waiter), waiterID: waiterID)
            if top.map({ other < $0 }) ?? true { top = other }
        }
        return top
    }

    /// - Returns: False if the waiter with that ID was admitted already.
    mutating func withdraw(_ waiterID: Int) -> Bool { waiting.remove(waiterID) != nil }

    /// - Returns: Idle connections beyond the new limits.
    mutating func setLimits(_ limit: Int, idle idleLimit: Int, within budget: ConnectionBudget)
        -> [Connection]
    {
        (self.limit, self.idleLimit) = (limit, idleLimit)
        let dropped = idle.shrink(to: idleLimit)
        budget.removeIdle(dropped.count)
        return dropped
    }

    private mutating func wait(
        _ waiter: Waiter, lacksBudget: Bool, within budget: ConnectionBudget
    ) -> Decision {
        let waiterID = budget.nextWaiterID()
        waiting.insert(waiter, key: waiterID)
        return .wait(waiter, waiterID: waiterID, lacksBudget: lacksBudget)
    }
}
