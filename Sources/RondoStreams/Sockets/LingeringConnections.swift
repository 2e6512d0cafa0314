/// The connections that linger, up to a limit. A value, under the lock of its owner.
struct LingeringConnections<Connection: AnyObject & Sendable>: Sendable {
    private struct Entry {
        let connection: Connection
        /// Increases in the order of arrival.
        let number: Int
        var hasSentAll: Bool
    }

    private let limit: Int
    private var entries: [ObjectIdentifier: Entry] = [:]
    private var next = 0

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }
    var all: [Connection] { entries.values.map(\.connection) }

    /// Adds a connection; beyond the limit it takes the place of the one that has waited longest, first among
    /// those that have sent everything.
    ///
    /// - Returns: The other one, which the caller must end.
    mutating func insert(_ connection: Connection, hasSentAll: Bool) -> Connection? {
        var removed: Connection?
        if entries.count >= limit, let first = entries.values.min(by: Self.goesBefore) {
            removed = first.connection
            remove(first.connection)
        }
        entries[ObjectIdentifier(connection)] = Entry(
            connection: connection, number: next, hasSentAll: hasSentAll)
        next += 1
        return removed
    }

    mutating func noteSentAll(_ connection: Connection) {
        entries[ObjectIdentifier(connection)]?.hasSentAll = true
    }

    mutating func remove(_ connection: Connection) { entries[ObjectIdentifier(connection)] = nil }

    private static func goesBefore(_ one: Entry, _ other: Entry) -> Bool {
        one.hasSentAll == other.hasSentAll ? one.number < other.number : one.hasSentAll
    }
}
