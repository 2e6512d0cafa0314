/// One mode: its members, and the changes to them that the loop's thread has not applied yet.
///
/// Held by `LoopState`, which changes `isCommon`, `blocks` and `ranNanoseconds` as well, because the common
/// modes, the common blocks and the time of all modes are its own.
struct ModeState {
    let name: RunLoop.Mode
    var isCommon = false

    private(set) var sources = ObjectSet<RunLoop.Source>()
    /// Signalled sources. Another mode may meanwhile have served the signal of one. Changed by `Source`,
    /// whose lock is held then: the number of its last signal says where it stands here.
    var signalled = SignalledSources()

    /// Descriptor sources whose watcher the loop's thread may have to change.
    private(set) var outdated = ObjectSet<RunLoop.Source>()
    /// Descriptor sources that the mode's `ev_loop` has a watcher for.
    private var watched = ObjectSet<RunLoop.Source>()

    let timers: TimerHeap<Timer>
    /// The same heap as `timers`, without reference counting for each timer that comes and goes; the mode
    /// retains the heap. With reference counting bench-guard's timer.scheduled and timer.fired take 4 % more
    /// instructions.
    let unretainedTimers: Unmanaged<TimerHeap<Timer>>

    private(set) var observers: [RunLoop.Observer] = []
    private var activityCounts = ActivityCounts()

    var blocks = BlockQueue()

    /// The time for which the loop has run in this mode, up to `LoopState.countedUntil`.
    var ranNanoseconds: Int64 = 0

    init(name: RunLoop.Mode, index: Int) {
        self.name = name
        timers = TimerHeap(mode: index)
        unretainedTimers = .passUnretained(timers)
    }

    /// The instant of the nearest timer, or `.never` if there are only sources; nil if there is neither.
    var nextInstant: LoopInstant? {
        holdsSources || timers.count > 0 ? timers.nearest ?? .never : nil
    }

    // MARK: Descriptor sources

    /// Sources whose watchers must be stopped, and sources that must be watched.
    struct Changes {
        let stop: [RunLoop.Source]
        let watch: [RunLoop.Source]
    }

    /// Notes that a descriptor source was added, or its interest changed.
    mutating func noteChange(of source: RunLoop.Source) {
        outdated.insert(source)
    }

    var holdsSources: Bool { !sources.isEmpty }

    func holds(_ source: RunLoop.Source) -> Bool { sources.contains(source) }

    mutating func insert(_ source: RunLoop.Source) { sources.insert(source) }

    /// - Parameter signal: The number of the source's last signal.
    mutating func remove(_ source: RunLoop.Source, signal: UInt64) {
        sources.remove(source)
        signalled.remove(source, signal: signal)
        // So a mode that is never run does not remember every source that was added and removed.
        if watched.contains(source) { outdated.insert(source) } else { outdated.remove(source) }
    }

    var hasOutdated: Bool { !outdated.isEmpty }

    /// Hands the outdated sources to the loop's thread, which makes their watchers match.
    ///
    /// - Returns: Nil: nothing is to be done about them.
    mutating func takeOutdated() -> Changes? {
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

    /// Takes those outdated sources that are no longer in the mode but still watched. The caller releases
    /// them after the lock.
    mutating func takeWithdrawn() -> [RunLoop.Source] {
        guard !outdated.isEmpty else { return [] }
        var withdrawn: [RunLoop.Source] = []
        for source in outdated where !sources.contains(source) && watched.remove(source) {
            withdrawn.append(source)
        }
        for source in withdrawn { outdated.remove(source) }
        return withdrawn
    }

    /// To be called when the loop's thread has ended. The caller releases the result after the lock.
    mutating func forgetWatchers() -> [ObjectSet<RunLoop.Source>] {
        defer { (outdated, watched) = (ObjectSet(), ObjectSet()) }
        return [outdated, watched]
    }

    // MARK: Observers

    var observedActivities: RunLoop.Activity { RunLoop.Activity(rawValue: activityCounts.observed) }

    /// Adds an observer in increasing order; observers of equal order stand in the order of addition (rule
    /// SRC-19).
    mutating func add(_ observer: RunLoop.Observer) {
        let index = firstIndexOfObservers { $0 > observer.order }
        observers.insert(observer, at: index)
        activityCounts.add(observer.activities.rawValue)
    }

    /// - Parameter observer: Is in the mode.
    mutating func remove(_ observer: RunLoop.Observer) {
        // A one-shot observer that was called is nearly always the first of its order.
        let candidates = (firstIndexOfObservers { $0 >= observer.order })..<observers.count
        guard let index = candidates.first(where: { observers[$0] === observer }) else { return }
        observers.remove(at: index)
        activityCounts.remove(observer.activities.rawValue)
    }

    /// The index of the first observer whose order `isBehind` accepts, as it does all those after it; found
    /// by halving.
    private func firstIndexOfObservers(_ isBehind: (Int) -> Bool) -> Int {
        var (low, high) = (0, observers.count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(observers[middle].order) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension ModeState {
    /// What a pass learns before it asks the kernel for the mode's events: whether it may wait there, and
    /// until when.
    struct WaitPlan {
        let nearestTimer: LoopInstant?
        let wasWoken: Bool
        let isCommon: Bool
        /// Whether `Attention` now reports that the loop waits. The caller then has to wait, and to call
        /// `endWaiting()` afterwards.
        let waits: Bool
        let changes: Changes?
    }
}
