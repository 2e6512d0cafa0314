/// What libev reported for one mode and the pass has not served yet, in call-out order.
///
/// One look at the kernel may find many descriptors ready; the passes that follow serve them one each
/// without asking again (rule RL-57). The set belongs to the mode, not to an activation: dropping it when
/// an activation ends would starve the sources at its tail.
struct ReadySet {
    struct Entry {
        let token: WatcherToken
        let events: Int32
        /// The look of the kernel that found it; see `ModeLoop.era`.
        let era: UInt32
    }

    private var entries: [Entry] = []
    private var next = 0
    private var reported: [Entry] = []

    var isEmpty: Bool { next == entries.count }
    /// Something was reported and has not been collected yet.
    var hasReport: Bool { !reported.isEmpty }

    /// Called from libev's callback: notes and does nothing else.
    mutating func report(_ entry: Entry) {
        reported.append(entry)
    }

    /// After `ev_run`: libev calls back in reverse order, so what it reported is turned round.
    mutating func collect() {
        guard !reported.isEmpty else { return }
        if isEmpty {
            entries.removeAll(keepingCapacity: true)
            next = 0
        }
        entries.append(contentsOf: reported.reversed())
        reported.removeAll(keepingCapacity: true)
    }

    mutating func popFirst() -> Entry? {
        guard !isEmpty else { return nil }
        defer { next += 1 }
        return entries[next]
    }
}
