internal import RondoCore

/// The idle connections of an origin, and the rules for their reuse and end. A value that knows no sockets.
///
/// They are grouped by the loop that used them last and by the route to the server. A loop takes a connection
/// of its own, and one of another loop only if it has none. All instants are of one clock, and never earlier
/// than a previous one.
struct IdleConnections<Connection>: ~Copyable {
    /// Seconds after which an idle connection is closed: servers close theirs after a minute or so.
    static var maximumIdleSeconds: Double { 55 }
    /// With more groups, empty ones are removed when another one is added.
    static var groupsBeforeCleanup: Int { 16 }

    private struct Entry {
        let since: LoopInstant
        var connection: Connection
    }

    private struct Group {
        let key: ConnectionKey
        let loop: ObjectIdentifier?
        /// In the order in which they became idle. An empty group is kept, because it is usually filled again
        /// soon.
        var entries: [Entry] = []
    }

    struct Position {
        fileprivate let group: Int
        fileprivate let index: Int
    }

    private var groups: [Group] = []
    private(set) var count = 0
    /// A lower bound: every connection has become idle at this instant or later.
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

    /// The position of the connection with `key` that is to be used next: the loop's own that became idle
    /// last, otherwise one of the loop that has the most.
    func choose(
        for key: ConnectionKey, of loop: ObjectIdentifier?,
        where isUsable: ((Connection) -> Bool)? = nil
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

    /// A connection's position, and how many of its group became idle after it. It is not removed.
    func find(
        for key: ConnectionKey, where isWanted: (Connection) -> Bool
    ) -> (connection: Connection, position: Position, later: Int)? {
        for group in groups.indices where groups[group].key == key {
            let entries = groups[group].entries
            guard let index = entries.lastIndex(where: { isWanted($0.connection) }) else { continue }
            return (
                entries[index].connection, Position(group: group, index: index), entries.count - 1 - index
            )
        }
        return nil
    }

    /// Replaces the connection at `position`.
    ///
    /// - Parameter change: Returns the new connection; nil to leave the old one.
    /// - Returns: The old connection, if it was replaced.
    mutating func change(at position: Position, _ change: (Connection) -> Connection?) -> Connection? {
        let old = groups[position.group].entries[position.index].connection
        guard let new = change(old) else { return nil }
        groups[position.group].entries[position.index].connection = new
        return old
    }

    /// The position of the connection that became idle `count` connections of its group before the last one.
    func position(behind count: Int, for key: ConnectionKey, of loop: ObjectIdentifier?) -> Position? {
        guard let group = group(key, loop), groups[group].entries.count > count else { return nil }
        return Position(group: group, index: groups[group].entries.count - 1 - count)
    }

    /// The instant at which the oldest connection became idle.
    var oldestSince: LoopInstant? { oldest?.since }

    mutating func removeOldest() -> Connection? {
        oldest.map { remove(at: Position(group: $0.group, index: 0)) }
    }

    /// Removes the oldest connections until there are no more than `limit`.
    mutating func shrink(to limit: Int) -> [Connection] {
        var removed: [Connection] = []
        while count > limit, let oldest = removeOldest() { removed.append(oldest) }
        return removed
    }

    /// Removes the connections that have been idle for too long.
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

    /// All idle connections, in no particular order.
    var all: some Sequence<Connection> { groups.lazy.map(\.entries).joined().map(\.connection) }

    /// Removes the connections for which `isUseless` is true.
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

    /// The number of groups.
    var groupCount: Int { groups.count }

    mutating func removeEmptyGroups() { groups.removeAll(where: \.entries.isEmpty) }

    private func group(_ key: ConnectionKey, _ loop: ObjectIdentifier?) -> Int? {
        groups.firstIndex { $0.loop == loop && $0.key == key }
    }

    private mutating func addGroup(_ key: ConnectionKey, _ loop: ObjectIdentifier?) -> Int {
        if groups.count >= Self.groupsBeforeCleanup { removeEmptyGroups() }
        groups.append(Group(key: key, loop: loop))
        return groups.count - 1
    }

    /// - Parameter isWanted: Nil: any connection is.
    private func last(in group: Int, where isWanted: ((Connection) -> Bool)?) -> Position? {
        let entries = groups[group].entries
        let index =
            if let isWanted { entries.lastIndex { isWanted($0.connection) } } else { entries.indices.last }
        return index.map { Position(group: group, index: $0) }
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
