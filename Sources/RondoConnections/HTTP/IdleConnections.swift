internal import RondoCore

/// The idle connections of an origin, and which of them have to go: decisions only, no sockets.
///
/// They are grouped by the loop that used them last and by the way to the server. A loop takes its own, and another
/// loop's only where it has none. All instants are by one clock, and never before one that was given already.
struct IdleConnections<Connection>: ~Copyable {
    /// A connection is not kept idle for longer, in seconds: servers close theirs after a minute or so.
    static var maximumIdleSeconds: Double { 55 }
    /// With more groups, empty ones are removed when another one is added.
    static var groupsKept: Int { 16 }

    private struct Entry {
        let since: LoopInstant
        var connection: Connection
    }

    private struct Group {
        let key: ConnectionKey
        let loop: ObjectIdentifier?
        /// In order of their becoming idle. It may be empty: it is about to be filled again, as a rule.
        var entries: [Entry] = []
    }

    struct Position {
        fileprivate let group: Int
        fileprivate let index: Int
    }

    private var groups: [Group] = []
    private(set) var count = 0
    /// Nothing has been idle since before.
    private var first: LoopInstant?

    var isEmpty: Bool { count == 0 }

    mutating func add(
        _ connection: Connection, for key: ConnectionKey, of loop: ObjectIdentifier?, now: LoopInstant
    ) {
        let group = group(key, loop) ?? addGroup(key, loop)
        groups[group].entries.append(Entry(since: now, connection: connection))
        count += 1
        if first == nil { first = now }
    }

    /// Where the connection by `key` stands that is to be used next: of the loop's own that which has been idle for the
    /// shortest time, otherwise one of the loop that has the most.
    func next(
        for key: ConnectionKey, of loop: ObjectIdentifier?,
        where isUsable: (Connection) -> Bool = { _ in true }
    ) -> Position? {
        if let own = group(key, loop), let position = last(in: own, where: isUsable) { return position }
        var best: Position?
        for index in groups.indices where groups[index].key == key {
            guard groups[index].entries.count > (best.map { groups[$0.group].entries.count } ?? 0),
                let position = last(in: index, where: isUsable)
            else { continue }
            best = position
        }
        return best
    }

    mutating func remove(at position: Position) -> Connection {
        count -= 1
        return groups[position.group].entries.remove(at: position.index).connection
    }

    /// Where a connection stands, and how many of its group have become idle later. It is not taken out.
    func find(
        for key: ConnectionKey, where isWanted: (Connection) -> Bool
    ) -> (connection: Connection, position: Position, later: Int)? {
        for index in groups.indices where groups[index].key == key {
            guard let position = last(in: index, where: isWanted) else { continue }
            let entries = groups[index].entries
            return (entries[position.index].connection, position, entries.count - 1 - position.index)
        }
        return nil
    }

    /// Replaces the connection at `position`.
    ///
    /// - Parameter change: Nil: it is left as it is.
    /// - Returns: What it was, if it was replaced.
    mutating func change(at position: Position, _ change: (Connection) -> Connection?) -> Connection? {
        let old = groups[position.group].entries[position.index].connection
        guard let new = change(old) else { return nil }
        groups[position.group].entries[position.index].connection = new
        return old
    }

    /// Where the connection stands that became idle `count` connections of its group before the last one.
    func position(behind count: Int, for key: ConnectionKey, of loop: ObjectIdentifier?) -> Position? {
        guard let group = group(key, loop), groups[group].entries.count > count else { return nil }
        return Position(group: group, index: groups[group].entries.count - 1 - count)
    }

    /// Seconds until the first of them has been idle for too long; nil if there is none.
    func secondsToExpiry(now: LoopInstant) -> Double? {
        oldest.map { max(0, Self.maximumIdleSeconds - now.seconds(since: $0.since)) }
    }

    /// Since when the one has been idle that has been so for the longest time.
    var oldestSince: LoopInstant? { oldest?.since }

    mutating func removeOldest() -> Connection? {
        oldest.map { remove(at: Position(group: $0.group, index: 0)) }
    }

    /// Takes out the oldest until there are no more than `limit`.
    mutating func shrink(to limit: Int) -> [Connection] {
        var removed: [Connection] = []
        while count > limit, let oldest = removeOldest() { removed.append(oldest) }
        return removed
    }

    /// Takes out those that have been idle for too long.
    mutating func removeExpired(now: LoopInstant) -> [Connection] {
        let isExpired = { (since: LoopInstant) in now.seconds(since: since) > Self.maximumIdleSeconds }
        guard let first, isExpired(first) else { return [] }
        var expired: [Connection] = []
        while let oldest, isExpired(oldest.since), let connection = removeOldest() {
            expired.append(connection)
        }
        self.first = oldest?.since
        return expired
    }

    /// All of them, in no order.
    var all: some Sequence<Connection> { groups.lazy.map(\.entries).joined().map(\.connection) }

    /// Takes out those that are of no use any more.
    mutating func remove(where isUseless: (Connection) -> Bool) -> [Connection] {
        var removed: [Connection] = []
        for group in groups.indices {
            groups[group].entries.removeAll { entry in
                let goes = isUseless(entry.connection)
                if goes { removed.append(entry.connection) }
                return goes
            }
        }
        count -= removed.count
        return removed
    }

    mutating func removeAll() -> [Connection] {
        defer {
            groups = []
            count = 0
            first = nil
        }
        return groups.flatMap(\.entries).sorted { $0.since < $1.since }.map(\.connection)
    }

    // MARK: Groups

    /// How many there are.
    var groupCount: Int { groups.count }

    mutating func removeEmptyGroups() { groups.removeAll(where: \.entries.isEmpty) }

    private func group(_ key: ConnectionKey, _ loop: ObjectIdentifier?) -> Int? {
        groups.firstIndex { $0.loop == loop && $0.key == key }
    }

    private mutating func addGroup(_ key: ConnectionKey, _ loop: ObjectIdentifier?) -> Int {
        if groups.count >= Self.groupsKept { removeEmptyGroups() }
        groups.append(Group(key: key, loop: loop))
        return groups.count - 1
    }

    private func last(in group: Int, where isWanted: (Connection) -> Bool) -> Position? {
        groups[group].entries.lastIndex { isWanted($0.connection) }.map { Position(group: group, index: $0) }
    }

    private var oldest: (group: Int, since: LoopInstant)? {
        var oldest: (group: Int, since: LoopInstant)?
        for group in groups.indices {
            guard let since = groups[group].entries.first?.since else { continue }
            if oldest.map({ since < $0.since }) ?? true { oldest = (group, since) }
        }
        return oldest
    }
}
