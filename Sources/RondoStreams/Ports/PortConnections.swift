internal import RondoCore

/// The connections that peers have made to a socket port. If there are too many connections, or too many
/// bytes of unfinished messages, the connection that has been silent longest is removed.
struct PortConnections {
    private var all: [Int: PortConnection] = [:]
    /// The numbers of the connections that are not read until the queue has room.
    private var heldBack: [Int] = []
    private var lastNumber = 0
    private var reads: UInt64 = 0
    /// The bytes of unfinished messages, of all connections.
    private var unfinished = 0

    var count: Int { all.count }
    var sources: [RunLoop.Source] { all.values.map(\.source) }
    var areHeldBack: Bool { !heldBack.isEmpty }

    subscript(number: Int) -> PortConnection? { all[number] }

    /// The number for a new connection.
    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// - Returns: The connections that were removed to make room; the caller must close them.
    mutating func add(_ connection: PortConnection, maximum: Int) -> [PortConnection] {
        var gone: [PortConnection] = []
        while all.count >= maximum, let silent = mostSilent(where: { _ in true }) {
            gone.append(remove(silent))
        }
        all[connection.number] = connection
        noteRead(of: connection)
        return gone
    }

    mutating func remove(_ connection: PortConnection) -> PortConnection {
        unfinished -= connection.endCounting()
        heldBack.removeAll { $0 == connection.number }
        all[connection.number] = nil
        return connection
    }

    /// Records that bytes were read from `connection`.
    mutating func noteRead(of connection: PortConnection) {
        reads += 1
        connection.noteRead(reads)
    }

    /// Updates the count of unfinished bytes after the reader of `connection` has changed.
    mutating func count(_ connection: PortConnection) {
        unfinished += connection.countUnfinished()
    }

    /// - Returns: The connections that were removed because there are more than `maximum` unfinished bytes;
    ///   the caller must close them.
    mutating func removeUnfinished(beyond maximum: Int, butNot current: PortConnection) -> [PortConnection] {
        var gone: [PortConnection] = []
        while unfinished > maximum,
            let silent = mostSilent(where: { $0 !== current && $0.counted > 0 })
        {
            gone.append(remove(silent))
        }
        return gone
    }

    private func mostSilent(where matches: (PortConnection) -> Bool) -> PortConnection? {
        all.values.lazy.filter(matches).min { $0.lastRead < $1.lastRead }
    }

    // MARK: Held back

    mutating func holdBack(_ connection: PortConnection) {
        guard !connection.isHeldBack else { return }
        connection.holdBack()
        heldBack.append(connection.number)
    }

    /// Ends holding back for all connections, and returns them.
    mutating func takeHeldBack() -> [PortConnection] {
        defer { heldBack = [] }
        return heldBack.compactMap { number in
            let connection = all[number]
            connection?.resume()
            return connection
        }
    }

    mutating func removeAll() -> [PortConnection] {
        defer { self = PortConnections() }
        return Array(all.values)
    }
}
