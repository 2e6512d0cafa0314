internal import RondoCore
internal import RondoMutex
internal import RondoStreams

/// One server, or the proxy that gets the requests in its place: its connections, in use and idle, and the
/// loads that wait for one.
///
/// There is one origin for each host and port, not for each route to it (TLS, proxy), since the limits count
/// all of these together; each idle connection has its own key. An origin has one lock. It is taken before
/// the locks of channels, queues, sources and loops, because a channel may be removed from its loops under
/// it.
final class Origin: BudgetCandidate {
    private typealias State = OriginState<PooledConnection, LeaseWait>

    /// The result of a request for a connection.
    enum LeaseOutcome: ~Copyable {
        case granted(Lease)
        /// The wait ends when there is room; `withdraw(_:)` ends it before.
        case wait(LeaseWait, waiterID: Int)
    }

    let server: ConnectionKey.Server
    /// The pool, which retains its origins until it is retired.
    private let pool: ConnectionPool
    private let budget: ConnectionBudget
    private let state: UnfairMutex<State>

    init(_ server: ConnectionKey.Server, of pool: ConnectionPool, _ limits: ConnectionLimits) {
        self.server = server
        self.pool = pool
        budget = pool.budget
        state = UnfairMutex(
            State(limit: limits.connections(to: server), idleLimit: limits.idleConnectionsPerServer))
    }

    // MARK: - Leases

    /// Leases a connection, or puts the request into the queue of waiters. Call it on the thread of a loop
    /// that is to serve the connection.
    ///
    /// - Parameters:
    ///   - loop: The loop whose idle connections are taken first: of a load in several loops the first of its
    ///     schedule, not the one that serves this pass.
    ///   - queue: The queue of the only loop and mode in which the connection is to be served; nil if there
    ///     are several. A connection that is registered with it stays registered (see
    ///     `ServerConnection.takeRegistration()`); any other is in no run loop.
    ///   - wait: Made if the request has to wait.
    ///   - mayReuse: False if the connection has to be a new one.
    func lease(
        _ key: ConnectionKey, of loop: RunLoop, at queue: SharedQueue?,
        for wait: @autoclosure () -> LeaseWait,
        mayReuse: Bool
    ) -> LeaseOutcome {
        let isUsable = Self.usableFilter
        let now = LoopClock.systemNow
        let (decision, dropped) = state.withLock { state in
            let dropped = state.removeExpired(now: now, within: budget)
            let decision = state.lease(
                key, of: ObjectIdentifier(loop), for: wait(), within: budget, mayReuse: mayReuse,
                where: isUsable)
            return (decision, dropped)
        }
        for idle in dropped { idle.close() }
        switch decision {
        case .reuse(let idle):
            let connection = prepare(idle, at: queue) ? idle : takeIdle(key, of: loop, at: queue)
            return .granted(Lease(of: self, loop: loop, connection: connection))
        case .open:
            return .granted(Lease(of: self, loop: loop, connection: nil))
        case .wait(let wait, let waiterID, let lacksBudget):
            if lacksBudget { budget.enqueue(self, waiterID: waiterID) }
            return .wait(wait, waiterID: waiterID)
        }
    }

    /// Leases a connection for a waiter that was admitted; see `lease`.
    func leaseAdmitted(_ key: ConnectionKey, of loop: RunLoop, at queue: SharedQueue?, mayReuse: Bool)
        -> Lease
    {
        let connection = mayReuse ? takeIdle(key, of: loop, at: queue) : nil
        return Lease(of: self, loop: loop, connection: connection)
    }

    // MARK: - The connection of a lease

    /// Takes an idle connection that shows no sign of being dead; nil if there is none. The lock is held for
    /// the choice, not for the look at the socket.
    func takeIdle(_ key: ConnectionKey, of loop: RunLoop, at queue: SharedQueue?) -> PooledConnection? {
        let isUsable = Self.usableFilter
        let loop = ObjectIdentifier(loop)
        while true {
            let now = LoopClock.systemNow
            let (idle, dropped) = state.withLock { state in
                let dropped = state.removeExpired(now: now, within: budget)
                return (state.takeIdle(key, of: loop, within: budget, where: isUsable), dropped)
            }
            for idle in dropped { idle.close() }
            guard let idle else { return nil }
            if prepare(idle, at: queue) { return idle }
        }
    }

    /// Excludes a connection whose last callback is still on the stack, because the delegate has run the loop
    /// again: its source is paused there, so that the inner run would not serve it. That is rare; otherwise
    /// nil.
    private static var usableFilter: (@Sendable (PooledConnection) -> Bool)? {
        guard RunLoop.servesInOuterRun else { return nil }
        return { idle in !idle.isServedInOuterRun }
    }

    /// Unregisters an idle connection that was chosen, unless it is registered with `queue`, and looks at it.
    ///
    /// - Returns: False if the connection was dead, and is closed.
    private func prepare(_ idle: PooledConnection, at queue: SharedQueue?) -> Bool {
        idle.unregister(unlessAt: queue)
        if idle.checkIdle() { return true }
        idle.close()
        return false
    }

    // MARK: - The end of a lease

    /// Removes the waiter `waiterID`. If it was admitted already, its lease ends.
    func withdraw(_ waiterID: Int) {
        if !state.withLock({ $0.withdraw(waiterID) }) { endLease() }
    }

    /// Ends a lease whose connection is not kept.
    func endLease() {
        end { state in
            state.endLease()
            return ([], nil, budget.giveBack(toIdle: false))
        }
    }

    /// Stops counting a connection among those to this server, because it serves no more requests; it still
    /// counts among all connections (rule WS-29).
    func leaveServerCount() {
        end { state in
            state.endLease()
            return ([], nil, budget.counts)
        }
    }

    /// Ends the lease of a connection that `leaveServerCount()` was called for, and that is closed.
    func endLeaseOutsideServerCount() { end { _ in ([], nil, budget.giveBack(toIdle: false)) } }

    /// Ends a lease whose connection is idle from now on.
    func endLease(keeping connection: ServerConnection, of loop: RunLoop) {
        guard pool.keeps(connection.generation), budget.keepsIdle else {
            connection.unregister(unlessAt: nil)
            connection.channel.close()
            return endLease()
        }
        let idle = PooledConnection.ready(connection)
        let (key, loop) = (connection.key, ObjectIdentifier(loop))
        let now = LoopClock.systemNow
        end { state in
            state.endLease()
            // The connection is kept before `end` admits the next waiter, which then finds it.
            let counts = budget.giveBack(toIdle: true)
            let dropped = state.keep(idle, for: key, of: loop, now: now, within: budget)
            return (dropped, park(behind: pool.maximumReady, for: key, of: loop, in: &state), counts)
        }
        // The pool may have been renewed or retired since the check above.
        if !pool.keeps(connection.generation) { for idle in removeAll() { idle.close() } }
        noteIdle()
    }

    /// Changes the state; if that makes room for a connection, admits the next waiter.
    private func end(
        _ change:
            @Sendable (inout State) -> (
                dropped: [PooledConnection], parked: PooledConnection?, ConnectionBudget.Counts
            )
    ) {
        let (dropped, parked, counts, admitted, lacking) = state.withLock { state in
            let (dropped, parked, counts) = change(&state)
            let admitted = state.hasWaiters ? state.admit(within: budget, rank: rank) : nil
            return (dropped, parked, counts, admitted, state.hasWaiters ? state.admissibleWaiterID : nil)
        }
        release(dropped, parked)
        if let admitted { admitted.admit() }
        if let lacking { budget.enqueue(self, waiterID: lacking) } else if budget.hasQueue { budget.admit() }
        if counts.inUse == 0, admitted == nil { HeapTrimmer.shared.trimAfterBurst() }
    }

    /// Releases connections that were removed under the lock: some closed, one parked.
    private func release(_ dropped: [PooledConnection], _ parked: PooledConnection?) {
        for idle in dropped { idle.close() }
        if parked != nil { HeapTrimmer.shared.noteParked() }
    }

    /// The pool's counter of ranked waits, which counts this origin's waits too.
    var ranked: RankedWaits { pool.rankedWaits }

    /// Nil while all waiting loads of the pool have the same priority.
    private var rank: (@Sendable (LeaseWait) -> Float)? {
        guard !ranked.isEmpty else { return nil }
        return { waiter in waiter.priority }
    }

    var group: ObjectIdentifier { ObjectIdentifier(pool) }

    var topWaiter: RankedWaiter? {
        guard let rank else { return nil }
        return state.withLock { $0.topWaiter(by: rank) }
    }

    func admitFirst() -> Int? {
        let rank = rank
        let (admitted, next) = state.withLock { state in
            (state.admit(within: budget, isQueued: true, rank: rank), state.admissibleWaiterID)
        }
        if let admitted { admitted.admit() }
        return next
    }

    // MARK: - Idle connections

    /// The generation of connections that are opened now; see `ConnectionPool.renew()`.
    var generation: Int { pool.generation }

    private func noteIdle() {
        if budget.isOverIdleLimit { budget.closeSurplus() }
        pool.watch()
    }

    /// Unregisters an idle connection from its loop, unless a load has taken it by now. Any thread may call
    /// it.
    func unregister(_ connection: ServerConnection) {
        let (key, identity, maximumReady) = (connection.key, ObjectIdentifier(connection), pool.maximumReady)
        let (left, parked) = state.withLock { state -> (ClientSchedule.RemovedQueues?, PooledConnection?) in
            guard let found = state.idle.find(for: key, where: { $0.isSame(as: identity) }),
                case .ready(let idle) = found.connection, idle.takeRegistration()
            else { return (nil, nil) }
            // Under the lock, so that no load can take the connection, or look for it, meanwhile.
            let left = idle.channel.registration.removeAll()
            // Enough other connections may have become idle meanwhile that this one is to be parked.
            if found.later < maximumReady { return (left, nil) }
            return (left, state.idle.change(at: found.position, { $0.parked() }))
        }
        // Outside the lock: leaving may release objects of the program, and wakes a loop, which traces
        // report.
        left?.leave()
        if parked != nil { HeapTrimmer.shared.noteParked() }
    }

    /// Parks the connection of a loop's group that became idle `count` connections before the last one; the
    /// later ones stay ready. Making a parked one ready again takes a microsecond or two.
    ///
    /// - Returns: The connection that was parked, to be released outside the lock.
    private func park(
        behind count: Int, for key: ConnectionKey, of loop: ObjectIdentifier?, in state: inout State
    ) -> PooledConnection? {
        guard state.idle.count > count, let position = state.idle.position(behind: count, for: key, of: loop)
        else {
            return nil
        }
        return state.idle.change(at: position) { $0.parked() }
    }

    // MARK: - For the pool

    var isUnused: Bool { state.withLock { $0.isUnused } }

    var idleDescriptors: [Int32] { state.withLock { $0.idle.all.compactMap(\.descriptor) } }

    /// Removes the dead connections among those whose descriptors have something to read.
    func removeDead(among readable: Set<Int32>) -> [PooledConnection] {
        remove { state in
            state.remove { idle in
                idle.descriptor.map(readable.contains) ?? true && !idle.checkIdle()
            }
        }
    }

    func removeExpired(now: LoopInstant) -> [PooledConnection] { remove { $0.removeExpired(now: now) } }

    /// Removes the oldest idle connection, unless it became idle after `since`.
    func removeOldest(idleSince since: LoopInstant) -> PooledConnection? {
        remove { idle in
            guard let oldest = idle.oldestSince, oldest <= since else { return [] }
            return idle.removeOldest().map { [$0] } ?? []
        }.first
    }

    func removeAll() -> [PooledConnection] { remove { $0.removeAll() } }

    private func remove(_ body: (inout IdleConnections<PooledConnection>) -> [PooledConnection])
        -> [PooledConnection]
    {
        state.withLock { state in
            let removed = body(&state.idle)
            state.idle.removeEmptyGroups()
            budget.removeIdle(removed.count)
            return removed
        }
    }

    var oldestIdleSince: LoopInstant? { state.withLock { $0.idle.oldestSince } }

    func setLimits(_ limits: ConnectionLimits) {
        let (dropped, waiterID) = state.withLock { state in
            let dropped = state.setLimits(
                limits.connections(to: server), idle: limits.idleConnectionsPerServer, within: budget)
            return (dropped, state.admissibleWaiterID)
        }
        for idle in dropped { idle.close() }
        // The budget admits as many waiters as there is room for.
        if let waiterID { budget.enqueue(self, waiterID: waiterID) }
    }
}
