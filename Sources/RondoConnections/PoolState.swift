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

    private(set) var limits: URLConnection.Limits
    /// Of each server in order of their becoming idle. A list may be empty, until `forgetUnused()`: it is about
    /// to be filled again, as a rule.
    private var entries: [PoolKey: [Entry]] = [:]
    private(set) var count = 0
    /// Nothing has been idle since before.
    private var first: LoopInstant?

    init(limits: URLConnection.Limits = URLConnection.Limits()) { self.limits = limits }

    /// Keeps a connection.
    ///
    /// - Returns: Those that are kept no longer: too old, or too many.
    mutating func add(_ kept: Kept, for key: PoolKey, now: LoopInstant) -> [Kept] {
        let ofServer = entries[key, default: []].add(Entry(since: now, kept: kept))
        count += 1
        if first == nil { first = now }
        var dropped = takeExpired(now: now)
        if ofServer > limits.idleConnectionsPerServer, let oldest = removeFirst(of: key) {
            dropped.append(oldest)
        }
        if count > limits.idleConnections, let oldest = removeOldest() { dropped.append(oldest) }
        return dropped
    }

    /// Takes out the connection to `key` that has been idle for the shortest time.
    mutating func take(for key: PoolKey, now: LoopInstant) -> (kept: Kept?, dropped: [Kept]) {
        let dropped = takeExpired(now: now)
        guard let place = entries.index(forKey: key), let taken = entries.values[place].popLast() else {
            return (nil, dropped)
        }
        count -= 1
        return (taken.kept, dropped)
    }

    /// Lets something else stand for the connection that became idle `count` connections to `key` before the
    /// last one.
    ///
    /// - Parameter change: Nil: it stays what it is.
    /// - Returns: What it was, if it was changed.
    mutating func change(behind count: Int, of key: PoolKey, _ change: (Kept) -> Kept?) -> Kept? {
        guard self.count > count, let place = entries.index(forKey: key), entries.values[place].count > count
        else { return nil }
        let index = entries.values[place].count - 1 - count
        let old = entries.values[place][index].kept
        guard let new = change(old) else { return nil }
        entries.values[place][index].kept = new
        return old
    }

    /// - Returns: Those that are too many by the new limits, the oldest first.
    mutating func setLimits(_ limits: URLConnection.Limits) -> [Kept] {
        self.limits = limits
        var dropped: [Kept] = []
        for (key, list) in entries where list.count > limits.idleConnectionsPerServer {
            for _ in limits.idleConnectionsPerServer..<list.count {
                if let oldest = removeFirst(of: key) { dropped.append(oldest) }
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
        for key in entries.keys {
            while let entry = entries[key]?.first, isExpired(entry.since), let kept = removeFirst(of: key) {
                expired.append(kept)
            }
        }
        self.first = oldest?.since
        return expired
    }

    /// What is kept, in no order.
    var all: some Sequence<Kept> { entries.values.lazy.joined().map(\.kept) }

    /// Takes out those that are of no use any more.
    mutating func remove(where isUseless: (Kept) -> Bool) -> [Kept] {
        var removed: [Kept] = []
        for (key, list) in entries {
            let left = list.filter { entry in
                let goes = isUseless(entry.kept)
                if goes { removed.append(entry.kept) }
                return !goes
            }
            if left.count < list.count { entries[key] = left }
        }
        count -= removed.count
        return removed
    }

    /// Lets go of the servers to which no connection is kept.
    mutating func forgetUnused() {
        if entries.values.contains(where: \.isEmpty) { entries = entries.filter { !$0.value.isEmpty } }
    }

    /// How many servers are known.
    var serverCount: Int { entries.count }

    mutating func removeAll() -> [Kept] {
        defer {
            entries = [:]
            count = 0
            first = nil
        }
        return entries.values.flatMap { $0 }.sorted { $0.since < $1.since }.map(\.kept)
    }

    // MARK: Inside

    private var oldest: (key: PoolKey, since: LoopInstant)? {
        entries.lazy.compactMap { key, list in list.first.map { (key, $0.since) } }.min { $0.1 < $1.1 }
    }

    private mutating func removeOldest() -> Kept? {
        guard let key = oldest?.key else { return nil }
        // Each list is gone through to find it.
        defer { if entries[key]?.isEmpty ?? false { entries[key] = nil } }
        return removeFirst(of: key)
    }

    private mutating func removeFirst(of key: PoolKey) -> Kept? {
        guard let place = entries.index(forKey: key), !entries.values[place].isEmpty else { return nil }
        count -= 1
        return entries.values[place].removeFirst().kept
    }
}

extension Array {
    /// - Returns: How many there are now.
    fileprivate mutating func add(_ element: Element) -> Int {
        append(element)
        return count
    }
}
