internal import RondoCore
internal import RondoStreams

/// What makes two requests able to share a connection.
struct PoolKey: Hashable {
    let host: String
    let port: Int
    /// Nil for plain HTTP.
    let tls: TLSSettings?
    /// The proxy that is asked in the server's place; nil: none.
    var proxy: StreamProxy?
}

/// Which kept connections there are, and which of them have to go: decisions only, no sockets.
struct PoolState<Kept> {
    /// Idle connections kept for one server (browsers keep six).
    static var maximumPerServer: Int { 6 }
    /// Idle connections kept in all.
    static var maximum: Int { 64 }
    /// A connection is not kept idle for longer, in seconds: servers close theirs after a minute or so.
    static var maximumIdleSeconds: Double { 55 }

    private struct Entry {
        let key: PoolKey
        let since: LoopInstant
        let kept: Kept
    }

    /// In order of their becoming idle.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Keeps a connection.
    ///
    /// - Returns: Those that are kept no longer: too old, or too many.
    mutating func add(_ kept: Kept, for key: PoolKey, now: LoopInstant) -> [Kept] {
        entries.append(Entry(key: key, since: now, kept: kept))
        var dropped = removeExpired(now: now)
        let ofServer = entries.indices.filter { entries[$0].key == key }
        if ofServer.count > Self.maximumPerServer { dropped.append(entries.remove(at: ofServer[0]).kept) }
        if entries.count > Self.maximum { dropped.append(entries.removeFirst().kept) }
        return dropped
    }

    /// Takes out the connection to `key` that has been idle for the shortest time.
    mutating func take(for key: PoolKey, now: LoopInstant) -> (kept: Kept?, dropped: [Kept]) {
        let dropped = removeExpired(now: now)
        guard let index = entries.lastIndex(where: { $0.key == key }) else { return (nil, dropped) }
        return (entries.remove(at: index).kept, dropped)
    }

    /// Seconds until the first of them has been idle for too long; nil if there is none.
    func secondsToExpiry(now: LoopInstant) -> Double? {
        entries.first.map { max(0, Self.maximumIdleSeconds - now.seconds(since: $0.since)) }
    }

    /// Takes out those that have been idle for too long.
    mutating func takeExpired(now: LoopInstant) -> [Kept] { removeExpired(now: now) }

    mutating func removeAll() -> [Kept] {
        defer { entries = [] }
        return entries.map(\.kept)
    }

    private mutating func removeExpired(now: LoopInstant) -> [Kept] {
        let isExpired = { (entry: Entry) in now.seconds(since: entry.since) > Self.maximumIdleSeconds }
        guard let first = entries.first, isExpired(first) else { return [] }
        let expired = entries.filter(isExpired).map(\.kept)
        entries.removeAll(where: isExpired)
        return expired
    }
}
