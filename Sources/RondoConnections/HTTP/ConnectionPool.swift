internal import RondoCore
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// The origins that the process, or a session, knows, with the limits that hold for all of them together. Which connection
/// a request gets is decided by its origin: `Origin.lease`.
///
/// Its lock is taken to find an origin by its name, to change limits and to look after idle connections; a request that
/// knows its origin takes none of the pool's.
///
/// Idle connections are in no run loop, but for those whose load is just over and another one about to begin: they stay
/// registered until that had its chance. To be told of each server's end at once, every connection would have to enter
/// and leave a loop's kernel set with each request. One `poll` of all that are idle, every few seconds and off the way of
/// any request, costs a request nothing and the connection no memory; what dies in between is noticed before it is used.
///
/// Time is the machine's: loops whose clocks are tests' share the pool with others.
package final class ConnectionPool: Sendable {
    /// That of the process.
    package static let shared = ConnectionPool()

    /// Of a loop's connections to one server as many stay as they are; the others are parked.
    static let maximumReady = 64

    /// How long a connection may be kept that its server has closed, in seconds, more or less. Chromium looks every
    /// ten seconds, curl once a second at most while it begins transfers.
    static let secondsBetweenLooks = 5.0

    private struct State {
        var limits = ConnectionLimits()
        var origins: [ConnectionKey.Server: Origin] = [:]
    }

    let budget: ConnectionBudget
    let maximumReady: Int
    private let secondsBetweenLooks: Double
    private let state: Mutex<State>
    /// Connections of an earlier one are not kept. After `retire()` that is every connection.
    private let current = Atomic(0)
    /// Looks at the idle connections every now and then, and keeps the pool; nil while there are none.
    private let sweeper = Mutex<Timer?>(nil)
    /// Whether there is one: what becomes idle with each request asks.
    private let hasSweeper = Atomic(false)
    /// A load has had another priority than the others.
    private let hasRanks = Atomic(false)

    init(
        _ limits: ConnectionLimits = ConnectionLimits(), within budget: ConnectionBudget = ConnectionBudget(),
        secondsBetweenLooks: Double = ConnectionPool.secondsBetweenLooks,
        maximumReady: Int = ConnectionPool.maximumReady
    ) {
        state = Mutex(State(limits: limits))
        self.budget = budget
        self.secondsBetweenLooks = secondsBetweenLooks
        self.maximumReady = maximumReady
    }

    /// A pool of a session's own, whose connections count among those of the process. To be retired when it is needed no
    /// more.
    package convenience init(connectionsPerServer: Int) {
        var limits = ConnectionLimits()
        limits.connectionsPerServer = connectionsPerServer
        self.init(limits.clamped, within: Self.shared.budget)
    }

    // MARK: - Origins

    /// The origin of `server`. It is kept for as long as it is referred to, or something is kept, used or waited for.
    func origin(of server: ConnectionKey.Server) -> Origin {
        state.withLock { state in
            if let origin = state.origins[server] { return origin }
            let origin = Origin(server, of: self, state.limits)
            state.origins[server] = origin
            return origin
        }
    }

    private var origins: [Origin] { state.withLock { Array($0.origins.values) } }

    /// How many origins are known.
    var originCount: Int { state.withLock { $0.origins.count } }

    /// Lets go of the origins that are not used and to which nothing but the pool refers.
    private func removeUnusedOrigins() {
        // Connections are released without the lock.
        let removed = state.withLock { state in
            var removed: [Origin] = []
            for server in state.origins.keys.filter({ state.origins[$0]?.isUnused ?? false }) {
                // Only from the table could another thread have got one meanwhile.
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
            closeOldest()
        }
    }

    // MARK: - Priorities

    /// Whether the priorities of loads that wait have to be looked at (rule US-39).
    var ranksWaiters: Bool { hasRanks.load(ordering: .relaxed) }

    func rankWaiters() { hasRanks.store(true, ordering: .relaxed) }

    // MARK: - Idle connections

    /// How many there are, of all pools within the same budget.
    var idleCount: Int { budget.counts.idle }

    /// Closes the connections that have been idle for the longest time, until there are no more than may be.
    func closeOldest() {
        while budget.isOverIdleLimit {
            let oldest = origins.lazy.compactMap { origin in
                origin.oldestIdleSince.map { (origin: origin, since: $0) }
            }.min { $0.since < $1.since }
            guard let oldest else { return }
            oldest.origin.removeOldest()?.close()
        }
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

    /// Has all later requests go over new connections. Those in use are closed once they are free. Any thread.
    package func renew() {
        let old = generation
        if old != Self.retired {
            _ = current.compareExchange(expected: old, desired: old + 1, ordering: .sequentiallyConsistent)
        }
        closeAll()
    }

    /// Closes idle connections, and keeps none from here on: no request is to come. Any thread.
    package func retire() {
        current.store(Self.retired, ordering: .sequentiallyConsistent)
        closeAll()
        // They hold the pool, for as long as one of their connections is in use.
        let origins = state.withLock { state in
            defer { state.origins = [:] }
            return state.origins
        }
        withExtendedLifetime(origins) {}
    }

    /// Has the idle connections looked at after a while, unless that is arranged already.
    func watch() {
        guard !hasSweeper.load(ordering: .sequentiallyConsistent) else { return }
        sweeper.withLock { sweeper in
            // Nil: there is no thread for it now, and what becomes idle next asks again.
            if sweeper == nil { setSweeper(&sweeper, sweepLater(in: secondsBetweenLooks)) }
        }
    }

    private func setSweeper(_ sweeper: inout Timer?, _ timer: Timer?) {
        sweeper = timer
        hasSweeper.store(timer != nil, ordering: .sequentiallyConsistent)
    }

    private func sweepLater(in seconds: Double) -> Timer? {
        guard let loader = try? RunLoop.startedLoader() else { return nil }
        let date = LoopClock.machineDate(inSeconds: seconds)
        let timer = Timer(fire: date, interval: 0, repeats: false) { [self] _ in
            sweep(now: LoopClock.machineNow)
        }
        loader.add(timer, forMode: .default)
        return timer
    }

    /// Closes what has been idle for too long or has died, and comes back for the rest.
    func sweep(now: LoopInstant) {
        for origin in origins { for idle in origin.removeExpired(now: now) { idle.close() } }
        closeDead(of: origins)
        removeUnusedOrigins()
        HeapTrimmer.shared.trimAfterBurst()
        let oldest = origins.compactMap(\.oldestIdleSince).min()
        let seconds = oldest.map {
            max(0, IdleConnections<IdleConnection>.maximumIdleSeconds - now.seconds(since: $0))
        }
        // A moment after it expires.
        sweepAgain(in: seconds.map { min($0 + 0.1, secondsBetweenLooks) })
    }

    private func closeDead(of origins: [Origin]) {
        // Without a lock: a connection that another thread takes, or closes, meanwhile is not found afterwards.
        let stirring = SocketCalls.readable(among: origins.flatMap(\.idleDescriptors))
        guard !stirring.isEmpty else { return }
        for origin in origins { for idle in origin.removeDead(among: stirring) { idle.close() } }
    }

    /// - Parameter seconds: Nil: nothing is idle, as far as is known.
    private func sweepAgain(in seconds: Double?) {
        sweeper.withLock { sweeper in
            sweeper?.invalidate()
            setSweeper(&sweeper, seconds.flatMap { sweepLater(in: $0) })
        }
        // One may have become idle in between.
        if seconds == nil, origins.contains(where: { $0.oldestIdleSince != nil }) { watch() }
    }
}
