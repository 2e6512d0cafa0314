/// What libev reported for one mode and the pass has not served yet, in call-out order.
///
/// One look at the kernel may find many descriptors ready; the passes that follow serve them one each
/// without asking again (rule RL-57). The set belongs to the mode, not to an activation: dropping it when
/// an activation ends would starve the sources at its tail.
struct ReadySet {
    struct Entry {
        let watcher: WatcherPointer
        /// Of the watcher as it was: where another one stands by now the entry is out of date.
        let generation: UInt32
        let events: Int32
        /// The look of the kernel that found it; see `ModeLoop.era`.
        let era: UInt32
    }

    /// Served from the end of `waiting` to the front; what stands behind it has been.
    private var entries: [Entry] = []
    private var waiting = 0
    private var reported: [Entry] = []

    var isEmpty: Bool { waiting == 0 }
    /// Something was reported and has not been collected yet.
    var hasReport: Bool { !reported.isEmpty }

    /// Called from libev's callback: notes and does nothing else.
    mutating func report(_ entry: Entry) {
        reported.append(entry)
    }

    /// After `ev_run`: libev calls back in reverse order, so what it reported last is served first, after what waits.
    mutating func collect() {
        guard !reported.isEmpty else { return }
        if isEmpty {
            swap(&entries, &reported)
        } else {
            entries.replaceSubrange(waiting..., with: EmptyCollection())
            entries.insert(contentsOf: reported, at: 0)
        }
        waiting = entries.count
        reported.removeAll(keepingCapacity: true)
    }

    /// The next to be served.
    var first: Entry? { isEmpty ? nil : entries[waiting - 1] }

    mutating func popFirst() -> Entry? {
        guard let first else { return nil }
        waiting -= 1
        return first
    }
}
