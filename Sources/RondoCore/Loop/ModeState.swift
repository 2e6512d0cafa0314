/// One mode: its members, and what other threads have left for the loop to find.
struct ModeState {
    let name: RunLoop.Mode
    var isCommon = false

    /// Those that are in the mode, and those that are leaving it.
    private(set) var listed = ObjectSet<RunLoop.Source>()
    /// Sources that have left while the loop ran in the mode, and are taken out when it next looks at the kernel. A
    /// connection leaves when its load ends and comes back with the next load, often in the same pass: it is
    /// found here as it was then. Those that left last stand last. In no way members: they do not keep the mode
    /// from being empty, and are not served.
    ///
    /// A source is here just as long as it is leaving by its own state, which the source's lock guards together
    /// with the loop's.
    private(set) var leaving: [RunLoop.Source] = []
    /// Signalled sources whose signal has not been taken yet, as far as this mode knows.
    var signalled = ObjectSet<RunLoop.Source>()

    /// Descriptor sources whose watcher may have to change; the loop's thread sees to it.
    private(set) var outdated = ObjectSet<RunLoop.Source>()
    /// Descriptor sources that the mode's `ev_loop` has a watcher for.
    private var watched = ObjectSet<RunLoop.Source>()

    let timers: TimerHeap<Timer>
    /// `timers`, without counting the reference for each timer that comes and goes: the mode keeps the heap.
    let unretainedTimers: Unmanaged<TimerHeap<Timer>>

    private(set) var observers: [RunLoop.Observer] = []
    private(set) var observedActivities: RunLoop.Activity = []

    var blocks = BlockQueue()

    /// How long the loop has run in this mode, up to `LoopState.countedUntil`.
    var ranNanoseconds: Int64 = 0

    init(name: RunLoop.Mode, index: Int) {
        self.name = name
        timers = TimerHeap(mode: index)
        unretainedTimers = .passUnretained(timers)
    }

    // MARK: Descriptor sources

    /// What is to be done about watchers.
    struct Changes {
        let stop: [RunLoop.Source]
        let watch: [RunLoop.Source]
    }

    /// A descriptor source was added, or its interest changed.
    mutating func noteChange(of source: RunLoop.Source) {
        outdated.insert(source)
    }

    /// The members.
    var sources: ObjectSet<RunLoop.Source> { leaving.isEmpty ? listed : listed.subtracting(leaving) }

    var holdsSources: Bool { listed.count > leaving.count }

    /// - Note: Whoever knows that the source leaves nothing asks `listed`.
    func holds(_ source: RunLoop.Source) -> Bool {
        listed.contains(source) && !leaving.contains { $0 === source }
    }

    mutating func insert(_ source: RunLoop.Source) { listed.insert(source) }

    mutating func noteLeaving(_ source: RunLoop.Source) { leaving.append(source) }

    /// It is leaving no more.
    mutating func noteReturn(of source: RunLoop.Source) {
        // Most often the last one.
        if leaving.last === source {
            leaving.removeLast()
        } else if let place = leaving.lastIndex(where: { $0 === source }) {
            leaving.remove(at: place)
        }
    }

    mutating func remove(_ source: RunLoop.Source) {
        noteReturn(of: source)
        listed.remove(source)
        signalled.remove(source)
        // A mode that is never run must not remember everything that has come and gone.
        if watched.contains(source) { outdated.insert(source) } else { outdated.remove(source) }
    }

    /// Hands the outdated sources to the loop's thread, which makes their watchers match.
    ///
    /// - Returns: Nil: there are none, or nothing is to be done about them.
    mutating func takeOutdated() -> Changes? {
        guard !outdated.isEmpty else { return nil }
        let changed = outdated
        outdated = ObjectSet()
        var stop: [RunLoop.Source] = []
        var watch: [RunLoop.Source] = []
        for source in changed {
            if holds(source) {
                watched.insert(source)
                watch.append(source)
            } else if watched.remove(source) {
                stop.append(source)
            }
        }
        return stop.isEmpty && watch.isEmpty ? nil : Changes(stop: stop, watch: watch)
    }

    /// The watchers are gone, with the loop's thread. What is returned is to be released without the lock.
    mutating func forgetWatchers() -> [ObjectSet<RunLoop.Source>] {
        defer { (outdated, watched) = (ObjectSet(), ObjectSet()) }
        return [outdated, watched]
    }

    // MARK: Observers

    /// Keeps increasing order; equal orders stand in order of addition (rule SRC-19).
    mutating func add(_ observer: RunLoop.Observer) {
        let place = observers.firstIndex { $0.order > observer.order } ?? observers.endIndex
        observers.insert(observer, at: place)
        observedActivities.formUnion(observer.activities)
    }

    mutating func remove(_ observer: RunLoop.Observer) {
        observers.removeAll { $0 === observer }
        observedActivities = observers.reduce(into: []) { $0.formUnion($1.activities) }
    }
}
