internal import RondoCore

/// The servers with idle connections, in the order in which the oldest connection of each became idle.
///
/// It is a picture of one moment, because nothing may be noted with each request. Connections that become
/// idle later are younger than all that are in the picture, so it stays true until its servers are used up,
/// and is then taken again. Whether a connection has been used meanwhile is found out when its turn comes.
struct EvictionOrder {
    struct Entry {
        weak var pool: (any BudgetPool)?
        let server: ConnectionKey.Server
        /// The instant since which the server's oldest connection has been idle.
        let since: LoopInstant
    }

    /// The one that has been idle longest is the last.
    private var entries: [Entry] = []
    private var takenAt = LoopInstant(nanoseconds: 0)

    /// Takes the picture.
    mutating func replace(by entries: [Entry], at now: LoopInstant) {
        self.entries = entries.sorted { $0.since > $1.since }
        takenAt = now
    }

    /// Removes the server whose oldest connection has been idle longest.
    mutating func popOldest() -> Entry? { entries.popLast() }

    /// Adds a server again, unless its connections are younger than the picture.
    mutating func add(_ entry: Entry) {
        guard entry.since <= takenAt else { return }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].since < entry.since { high = middle } else { low = middle + 1 }
        }
        entries.insert(entry, at: low)
    }
}
