internal import RondoCore
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// The origins that the process, or a session, knows, and the limits for all of them together. The connection
/// of a request is chosen by its origin: `Origin.lease`.
///
/// The pool's lock is taken to find an origin by its name, to change limits and to sweep idle connections; a
/// request that knows its origin does not take it.
///
/// Idle connections are in no run loop, with one exception: if other loads wait to be served when a load
/// ends, its connection stays registered until they were served, since one of them may use it. To learn of
/// each server's close at once, every connection would have to enter and leave a loop's kernel set with each
/// request. Instead one `poll` checks all idle connections every few seconds, which adds nothing to a request
/// and takes no memory for a connection. A connection that dies in between is found dead before it is used.
///
/// Times are of the system's clock, because loops with test clocks share the pool with others.
package final class ConnectionPool: BudgetPool {
    /// The pool of the process.
    package static let shared: ConnectionPool = {
        let pool = ConnectionPool()
        // A connection that is needed now is worth more than an idle one.
        DescriptorShortage.onShortage { [budget = pool.budget] in budget.closeIdle() }
        return pool
    }()

    /// This many of a loop's connections to one server stay ready for use; further ones are parked.
    static let maximumReady = 64

    /// Seconds between two checks of the idle connections, and so about the longest time for which a
    /// connection is kept after its server has closed it. Chromium checks every ten seconds, curl at most
    /// once a second while it begins transfers.
    static let secondsBetweenLooks = 5.0

    private struct State {
        var limits = ConnectionLimits()
        var origins: [ConnectionKey.Server: Origin] = [:]
        /// The number of origins at which the unused ones are removed.
        var pruningCount = ConnectionPool.minimumPruningCount
    }

    /// Up to this number of origins only a sweep removes the unused ones.
    static let minimumPruningCount = 256

    let budget: ConnectionBudget
    let maximumReady: Int
    private let secondsBetweenLooks: Double
    private let state: Mutex<State>
    /// The current generation. Connections of earlier generations are not kept, and after `retire()` none is
    /// kept.
    private let current = Atomic(0)
    /// Sweeps the idle connections from time to time, and retains the pool; nil while there are no idle
    /// connections.
    private let sweeper = Mutex<Timer?>(nil)
    /// Whether there is a sweeper: every request whose connection becomes idle reads it.
    private let hasSweeper = Atomic(false)
    /// The waits for a connection whose priority is not the usual one.
    let rankedWaits = RankedWaits()

    init(
        _ limits: ConnectionLimits = ConnectionLimits(), within budget: ConnectionBudget = ConnectionBudget(),
        secondsBetweenLooks: Double = ConnectionPool.secondsBetweenLooks,
        maximumReady: Int = ConnectionPool.maximumReady
    ) {
        state = Mutex(State(limits: limits))
        self.budget = budget
        self.secondsBetweenLooks = secondsBetweenLooks
        self.maximumReady = maximumReady
        budget.add(self)
    }

    /// Makes a session's own pool, whose connections count in the budget of the process. Retire it when it is
    /// not needed any more.
    package convenience init(connectionsPerServer: Int) {
        var limits = ConnectionLimits()
        limits.connectionsPerServer = connectionsPerServer
        self.init(limits.clamped, within: Self.shared.budget)
    }

    // MARK: - Origins

    /// Returns the origin of `server`, and makes it if there is none. It exists as long as something refers
    /// to it, or it has connections or waiters.
    func findOrMakeOrigin(of server: ConnectionKey.Server) -> Origin {
        let (origin, mustPrune) = state.withLock { state in
            if let origin = state.origins[server] { return (origin, false) }
            let origin = Origin(server, of: self, state.limits)
            // It would retain a retired pool, and be retained by it.
            if generation == Self.retired { return (origin, false) }
            state.origins[server] = origin
            return (origin, state.origins.count >= state.pruningCount)
        }
        // A sweep comes only where connections become idle.
        if mustPrune {
            removeUnusedOrigins()
            state.withLock { $0.pruningCount = max(Self.minimumPruningCount, 2 * $0.origins.count) }
        }
        return origin
    }

    /// The origins that are known.
    var origins: [Origin] { state.withLock { Array($0.origins.values) } }

    /// Removes the origins that are unused and to which only the pool refers.
    private func removeUnusedOrigins() {
        // Connections are released without the lock.
        let removed = state.withLock { state in
            var removed: [Origin] = []
            for server in state.origins.keys.filter({ state.origins[$0]?.isUnused ?? false }) {
                // Another thread can obtain a reference only through the table, from which the origin was
                // removed.
                if var origin = state.origins.removeValue(forKey: server) {
                    if isKnownUniquelyReferenced(&origin) {
                        removed.append(origin)
                    } else {
                        state.origins[server] = origin
                    }
                }
            }
            return removed
        }
        withExtendedLifetime(removed) {}
    }

    var limits: ConnectionLimits {
        get { state.withLock { $0.limits } }
        set {
            let limits = newValue.clamped
            state.withLock { $0.limits = limits }
            budget.setLimits(limits)
            for origin in origins { origin.setLimits(limits) }
            budget.closeSurplus()
        }
    }

    // MARK: - Idle connections

    /// The number of idle connections of all pools with the same budget.
    var idleCount: Int { budget.counts.idle }

    var idleServers: [(server: ConnectionKey.Server, since: LoopInstant)] {
        origins.compactMap { origin in origin.oldestIdleSince.map { (server: origin.server, since: $0) } }
    }

    func closeOldest(to server: ConnectionKey.Server, idleSince since: LoopInstant) -> LoopInstant? {
        guard let origin = state.withLock({ $0.origins[server] }) else { return nil }
        origin.removeOldest(idleSince: since)?.close()
        return origin.oldestIdleSince
    }

    func closeAll() {
        for origin in origins { for idle in origin.removeAll() { idle.close() } }
        removeUnusedOrigins()
        sweepAgain(in: nil)
    }

    // MARK: - Generations

    private static let retired = -1

    /// The generation of connections that are opened now.
    var generation: Int { current.load(ordering: .relaxed) }

    /// Whether a connection of `generation` may serve further requests.
    func keeps(_ generation: Int) -> Bool { generation == self.generation && generation != Self.retired }

    /// Makes all later requests use new connections. Connections in use are closed once they are free. Any
    /// thread may call it.
    package func renew() {
        let old = generation
        if old != Self.retired {
            _ = current.compareExchange(expected: old, desired: old + 1, ordering: .sequentiallyConsistent)
        }
        closeAll()
    }

    /// Closes idle connections, and keeps none from now on; call it when no more requests will come. Any
    /// thread may call it.
    package func retire() {
        current.store(Self.retired, ordering: .sequentiallyConsistent)
        closeAll()
        // The origins retain the pool for as long as one of their connections is in use.
        let origins = state.withLock { state in
            defer { state.origins = [:] }
            return state.origins
        }
        withExtendedLifetime(origins) {}
    }

    /// Arranges a sweep of the idle connections after a while, unless one is arranged already.
    func watch() {
        guard !hasSweeper.load(ordering: .sequentiallyConsistent) else { return }
        sweeper.withLock { sweeper in
            // Nil if the loader's thread cannot be started now; the next connection that becomes idle tries
            // again.
            if sweeper == nil { setSweeper(&sweeper, sweepLater(in: secondsBetweenLooks)) }
        }
    }

    private func setSweeper(_ sweeper: inout Timer?, _ timer: Timer?) {
        sweeper = timer
        hasSweeper.store(timer != nil, ordering: .sequentiallyConsistent)
    }

    /// - Returns: Nil if the system has no thread left for the timer's loop.
    private func sweepLater(in seconds: Double) -> Timer? {
        guard let loader = try? RunLoop.startedLoader() else { return nil }
        let date = LoopClock.systemDate(inSeconds: seconds)
        let timer = Timer(fire: date, interval: 0, repeats: false) { [self] _ in
            sweep(now: LoopClock.systemNow)
        }
        loader.add(timer, forMode: .default)
        return timer
    }

    /// Closes connections that have been idle for too long or have died, and arranges the next sweep.
    func sweep(now: LoopInstant) {
        for origin in origins { for idle in origin.removeExpired(now: now) { idle.close() } }
        closeDead(of: origins)
        removeUnusedOrigins()
        HeapTrimmer.shared.trimAfterBurst()
        let oldest = origins.compactMap(\.oldestIdleSince).min()
        let seconds = oldest.map {
            max(0, IdleConnections<PooledConnection>.maximumIdleSeconds - now.seconds(since: $0))
        }
        // At the latest shortly after the next connection expires.
        sweepAgain(in: seconds.map { min($0 + 0.1, secondsBetweenLooks) })
    }

    private func closeDead(of origins: [Origin]) {
        // Without a lock: a connection that another thread takes, or closes, meanwhile is not found
        // afterwards.
        let readable = SocketCalls.readable(among: origins.flatMap(\.idleDescriptors))
        guard !readable.isEmpty else { return }
        for origin in origins { for idle in origin.removeDead(among: readable) { idle.close() } }
    }

    /// - Parameter seconds: Nil if no idle connection was found.
    private func sweepAgain(in seconds: Double?) {
        sweeper.withLock { sweeper in
            sweeper?.invalidate()
            setSweeper(&sweeper, seconds.flatMap { sweepLater(in: $0) })
        }
        // A connection may have become idle meanwhile.
        if seconds == nil, origins.contains(where: { $0.oldestIdleSince != nil }) { watch() }
    }
}
