internal import RondoCore
internal import RondoStreams

/// What makes two requests able to share a connection.
///
/// A reference and a hash that is computed once: a request looks itself up in several tables.
struct PoolKey: Hashable, Sendable {
    private final class Values: Sendable {
        let server: Server
        let tls: TLSSettings?
        let proxy: StreamProxy?
        let hash: Int

        init(_ server: Server, _ tls: TLSSettings?, _ proxy: StreamProxy?) {
            self.server = server
            self.tls = tls
            self.proxy = proxy
            var hasher = Hasher()
            hasher.combine(server)
            hasher.combine(tls)
            hasher.combine(proxy)
            hash = hasher.finalize()
        }
    }

    /// A server, or the proxy that is asked in its place, as limits count them.
    struct Server: Hashable, Sendable {
        let host: String
        let port: Int
    }

    private let values: Values

    /// - Parameters:
    ///   - tls: Nil for plain HTTP.
    ///   - proxy: The proxy that is asked in the server's place; nil: none.
    init(host: String, port: Int, tls: TLSSettings?, proxy: StreamProxy? = nil) {
        values = Values(Server(host: host, port: port), tls, proxy)
    }

    var server: Server { values.server }
    var host: String { values.server.host }
    var port: Int { values.server.port }
    var tls: TLSSettings? { values.tls }
    var proxy: StreamProxy? { values.proxy }

    static func == (left: PoolKey, right: PoolKey) -> Bool {
        let (left, right) = (left.values, right.values)
        return left === right
            || left.hash == right.hash && left.server == right.server && left.tls == right.tls
                && left.proxy == right.proxy
    }

    func hash(into hasher: inout Hasher) { hasher.combine(values.hash) }
}

/// Which kept connections there are, and which of them have to go: decisions only, no sockets.
///
/// The moments that it is given are all by one clock, and never before those that it was given already.
struct PoolState<Kept>: ~Copyable {
    /// A connection is not kept idle for longer, in seconds: servers close theirs after a minute or so.
    static var maximumIdleSeconds: Double { 55 }

    private struct Entry {
        let since: LoopInstant
        var kept: Kept
    }

    private struct Known {
        let key: PoolKey
        /// In order of their becoming idle. It may be empty, until `forgetUnused()`: it is about to be filled again, as
        /// a rule.
        var entries: [Entry] = []
    }

    private(set) var limits: URLConnection.Limits
    private var servers: [Known] = []
    /// Where each stands in `servers`.
    private var places: [PoolKey: Int] = [:]
    /// Which was named last, and is nearly always the next one too: found without hashing.
    private var last = 0
    private(set) var count = 0
    /// Nothing has been idle since before.
    private var first: LoopInstant?

    init(limits: URLConnection.Limits = URLConnection.Limits()) { self.limits = limits }

    /// Keeps a connection.
    ///
    /// - Returns: Those that are kept no longer: too old, or too many.
    mutating func add(_ kept: Kept, for key: PoolKey, now: LoopInstant) -> [Kept] {
        let place = place(of: key) ?? addServer(key)
        servers[place].entries.append(Entry(since: now, kept: kept))
        let ofServer = servers[place].entries.count
        count += 1
        if first == nil { first = now }
        var dropped = takeExpired(now: now)
        if ofServer > limits.idleConnectionsPerServer, let oldest = removeFirst(at: place) {
            dropped.append(oldest)
        }
        if count > limits.idleConnections, let oldest = removeOldest() { dropped.append(oldest) }
        return dropped
    }

    /// Takes out the connection to `key` that has been idle for the shortest time, of those that are usable.
    mutating func take(
        for key: PoolKey, now: LoopInstant, where isUsable: (Kept) -> Bool = { _ in true }
    ) -> (kept: Kept?, dropped: [Kept]) {
        let dropped = takeExpired(now: now)
        guard let place = place(of: key),
            let index = servers[place].entries.lastIndex(where: { isUsable($0.kept) })
        else { return (nil, dropped) }
        count -= 1
        return (servers[place].entries.remove(at: index).kept, dropped)
    }

    /// The one to `key` that has been idle for the shortest time, of those that are wanted, and how many have become idle
    /// later. It stays.
    mutating func last(for key: PoolKey, where isWanted: (Kept) -> Bool) -> (kept: Kept, later: Int)? {
        guard let place = place(of: key),
            let index = servers[place].entries.lastIndex(where: { isWanted($0.kept) })
        else { return nil }
        return (servers[place].entries[index].kept, servers[place].entries.count - 1 - index)
    }

    /// Lets something else stand for the connection that became idle `count` connections to `key` before the
    /// last one.
    ///
    /// - Parameter change: Nil: it stays what it is.
    /// - Returns: What it was, if it was changed.
    mutating func change(behind count: Int, of key: PoolKey, _ change: (Kept) -> Kept?) -> Kept? {
        guard self.count > count, let place = place(of: key), servers[place].entries.count > count else {
            return nil
        }
        let index = servers[place].entries.count - 1 - count
        let old = servers[place].entries[index].kept
        guard let new = change(old) else { return nil }
        servers[place].entries[index].kept = new
        return old
    }

    /// - Returns: Those that are too many by the new limits, the oldest first.
    mutating func setLimits(_ limits: URLConnection.Limits) -> [Kept] {
        self.limits = limits
        var dropped: [Kept] = []
        for place in servers.indices {
            while servers[place].entries.count > limits.idleConnectionsPerServer,
                let oldest = removeFirst(at: place)
            {
                dropped.append(oldest)
            }
        }
        while count > limits.idleConnections, let oldest = removeOldest() { dropped.append(oldest) }
        return dropped
    }

    /// Seconds until the first of them has been idle for too long; nil if there is none.
    func secondsToExpiry(now: LoopInstant) -> Double? {
        oldest.map { max(0, Self.maximumIdleSeconds - now.seconds(since: $0.since)) }
    }

    /// Takes out those that have been idle for too long.
    mutating func takeExpired(now: LoopInstant) -> [Kept] {
        let isExpired = { (since: LoopInstant) in now.seconds(since: since) > Self.maximumIdleSeconds }
        guard let first, isExpired(first) else { return [] }
        var expired: [Kept] = []
        for place in servers.indices {
            while let entry = servers[place].entries.first, isExpired(entry.since),
                let kept = removeFirst(at: place)
            {
                expired.append(kept)
            }
        }
        self.first = oldest?.since
        return expired
    }

    /// What is kept, in no order.
    var all: some Sequence<Kept> { servers.lazy.map(\.entries).joined().map(\.kept) }

    /// Takes out those that are of no use any more.
    mutating func remove(where isUseless: (Kept) -> Bool) -> [Kept] {
        var removed: [Kept] = []
        for place in servers.indices {
            servers[place].entries.removeAll { entry in
                let goes = isUseless(entry.kept)
                if goes { removed.append(entry.kept) }
                return goes
            }
        }
        count -= removed.count
        return removed
    }

    /// Lets go of the servers to which no connection is kept.
    mutating func forgetUnused() {
        guard servers.contains(where: \.entries.isEmpty) else { return }
        servers.removeAll(where: \.entries.isEmpty)
        places = Dictionary(uniqueKeysWithValues: servers.indices.map { (servers[$0].key, $0) })
    }

    /// How many servers are known.
    var serverCount: Int { servers.count }

    mutating func removeAll() -> [Kept] {
        defer {
            servers = []
            places = [:]
            count = 0
            first = nil
        }
        return servers.flatMap(\.entries).sorted { $0.since < $1.since }.map(\.kept)
    }

    // MARK: Inside

    private mutating func place(of key: PoolKey) -> Int? {
        if last < servers.count, servers[last].key == key { return last }
        guard let place = places[key] else { return nil }
        last = place
        return place
    }

    private mutating func addServer(_ key: PoolKey) -> Int {
        last = servers.count
        places[key] = last
        servers.append(Known(key: key))
        return last
    }

    private var oldest: (place: Int, since: LoopInstant)? {
        var oldest: (place: Int, since: LoopInstant)?
        for place in servers.indices {
            guard let since = servers[place].entries.first?.since else { continue }
            if oldest.map({ since < $0.since }) ?? true { oldest = (place, since) }
        }
        return oldest
    }

    private mutating func removeOldest() -> Kept? {
        guard let place = oldest?.place else { return nil }
        // Each list is gone through to find it.
        defer { if servers[place].entries.isEmpty { removeServer(at: place) } }
        return removeFirst(at: place)
    }

    private mutating func removeServer(at place: Int) {
        places[servers[place].key] = nil
        servers.swapAt(place, servers.count - 1)
        servers.removeLast()
        if place < servers.count { places[servers[place].key] = place }
    }

    private mutating func removeFirst(at place: Int) -> Kept? {
        guard !servers[place].entries.isEmpty else { return nil }
        count -= 1
        return servers[place].entries.removeFirst().kept
    }
}
