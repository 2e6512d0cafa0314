/// One activation of a run loop, pass by pass.
///
/// The order of call-outs is that of rule RL-52 and is written here once, from top to bottom:
///
///     entry observers
///     ┌ (a) beforeTimers                 every pass
///     │ (b) beforeSources                every pass
///     │ (c) queued blocks
///     │ (d) signalled sources            all, or the first if the caller wants to return then
///     │ (e) blocks again                 if (d) served something
///     │ (f) the main queue               straight to (j) if it has work and was not drained last time
///     │ (g) beforeWaiting  ┐
///     │ (h) sleep          │             only if this pass may sleep
///     │ (i) afterWaiting   ┘
///     │ (j) one of: all due timers, the main queue, one descriptor source, or nothing
///     │ (k) blocks
///     └ (l) handled? timed out? stopped? empty?
///     exit observers
///
/// libev calls nothing of the user's: it notes what is ready (`ModeLoop`), and (j) calls out. Every lock is
/// let go before a call-out, and what was decided before one is asked again after it.
///
/// Loop's thread only.
struct Pass {
    let loop: RunLoop
    let mode: Int
    let modeLoop: ModeLoop
    let limit: RunLoop.RunLimit
    let returnAfterSourceHandled: Bool

    func run() -> RunLoop.RunResult {
        notify(.entry)
        var result: RunLoop.RunResult? = loop.state.withLock { $0.isStopped } ? .stopped : nil
        var drainedMainQueue = true
        while result == nil { result = runOnce(&drainedMainQueue) }
        notify(.exit)
        // The loop above ends only with a result.
        return result ?? .finished
    }

    private func runOnce(_ drainedMainQueue: inout Bool) -> RunLoop.RunResult? {
        notify(.beforeTimers)
        notify(.beforeSources)
        performBlocks()
        var handled = performSignalledSources()
        if handled { performBlocks() }

        if !drainedMainQueue, loop.mainQueueHasWork(in: mode) {
            loop.drainMainQueue(in: mode, modeLoop)
            drainedMainQueue = true
            handled = true
        } else {
            let maySleep = !handled && !pollsOnly
            if maySleep { notify(.beforeWaiting) }
            let timersAreDue = look(maySleep: maySleep)
            if maySleep { notify(.afterWaiting) }
            drainedMainQueue = false
            for kind in kindsToServe(timersAreDue: timersAreDue) {
                switch kind {
                case .timers:
                    fireDueTimers()
                case .mainQueue:
                    loop.drainMainQueue(in: mode, modeLoop)
                    drainedMainQueue = true
                    handled = true
                case .descriptors:
                    if serveDescriptor() { handled = true }
                }
            }
        }
        performBlocks()
        return exitCheck(handled: handled)
    }

    /// (l): where several hold, the first in this order is the result (rule RL-28).
    private func exitCheck(handled: Bool) -> RunLoop.RunResult? {
        if handled && returnAfterSourceHandled { return .handledSource }
        switch limit {
        case .immediately: return .timedOut
        case .at(let instant): if LoopClock.now >= instant { return .timedOut }
        case .never: break
        }
        let (isStopped, isEmpty) = loop.state.withLock { [mode, loop] state in
            (state.isStopped, state.isEmpty(mode) && !loop.drainsMainQueue(in: state.modes[mode]))
        }
        return isStopped ? .stopped : isEmpty ? .finished : nil
    }

    private var pollsOnly: Bool { if case .immediately = limit { true } else { false } }

    // MARK: - Observers, blocks, signalled sources

    private func notify(_ activity: RunLoop.Activity) {
        let observers = loop.state.withLock { state -> [RunLoop.Observer] in
            guard !state.modes[mode].observedActivities.isDisjoint(with: activity) else { return [] }
            return state.modes[mode].observers.filter { $0.activities.contains(activity) }
        }
        for observer in observers { observer.notify(activity) }
    }

    /// A block queued by one of these waits for the next block point (rule RL-63).
    private func performBlocks() {
        let blocks = loop.state.withLock { state in
            state.hasBlocks(for: mode) ? state.takeBlocks(for: mode) : []
        }
        for block in blocks { block.run() }
    }

    /// - Returns: Whether any was performed.
    private func performSignalledSources() -> Bool {
        let sources = loop.state.withLock { [mode] in $0.takeSignalled(in: mode) }
        guard !sources.isEmpty else { return false }
        // Another loop may have served some of them already.
        let batch =
            sources
            .compactMap { source in source.state.withLock { $0.signal }.map { (source: source, signal: $0) } }
            .sorted { ($0.source.order, $0.signal) < ($1.source.order, $1.signal) }
        var performed = false
        for (place, entry) in batch.enumerated() where entry.source.performIfSignalled() {
            performed = true
            guard returnAfterSourceHandled else { continue }
            let rest = batch[(place + 1)...].map(\.source)
            loop.state.withLock { [mode] in $0.putBack(rest, in: mode) }
            break
        }
        return performed
    }

    // MARK: - The look at the kernel

    /// (h): sleeps until something real has happened, or just looks.
    ///
    /// While descriptors found earlier wait to be served, the kernel is not asked (rule RL-57). A sleep can end
    /// without cause (a signal, a stale registration, libev's own minute); it goes on then, or observers would
    /// see waits that were none.
    ///
    /// - Returns: Whether timers are due.
    private func look(maySleep: Bool) -> Bool {
        var wasWoken = false
        while true {
            let now = LoopClock.now
            let maySleepNow = maySleep && modeLoop.ready.isEmpty && !limit.isReached(at: now)
            let outlook = loop.state.withLock { [mode, wasWoken] in
                $0.prepareToLook(mode: mode, now: now, maySleep: maySleepNow && !wasWoken)
            }
            wasWoken = wasWoken || outlook.wasWoken
            if !outlook.stop.isEmpty || !outlook.watch.isEmpty {
                loop.updateWatchers(stop: outlook.stop, watch: outlook.watch, in: modeLoop)
                continue
            }
            if !outlook.sleeps {
                if modeLoop.ready.isEmpty { modeLoop.poll(mayBlock: false) }
                return outlook.nearestTimer.map { $0 <= now } ?? false
            }
            loop.armTimer(at: min(outlook.nearestTimer ?? .never, limit.instant), now: now)
            modeLoop.poll(mayBlock: true)
            loop.state.withLock { $0.isWaiting = false }
            if !modeLoop.ready.isEmpty || modeLoop.mainQueueIsReady {
                return timersAreDue()
            }
            // Whether it was a timer, the limit, a wake-up or nothing at all shows in the next round.
        }
    }

    private func timersAreDue() -> Bool {
        let nearest = loop.state.withLock { [mode] state -> LoopInstant? in
            // Attention that was asked for until now has been given.
            state.wakeIsPending = false
            return state.modes[mode].timers.nearest
        }
        return nearest.map { $0 <= LoopClock.now } ?? false
    }

    // MARK: - (j)

    /// One kind a pass, in turns; in a pass that only polls, every kind that is ready (rules RL-31 and RL-52).
    private func kindsToServe(timersAreDue: Bool) -> [EventKind] {
        var found: [EventKind] = []
        var kind = modeLoop.turn
        for _ in EventKind.allCases {
            let isReady =
                switch kind {
                case .timers: timersAreDue
                case .mainQueue: modeLoop.mainQueueIsReady
                case .descriptors: !modeLoop.ready.isEmpty
                }
            if isReady {
                found.append(kind)
                if !pollsOnly { break }
            }
            kind = kind.next
        }
        if let last = found.last { modeLoop.turn = last.next }
        return found
    }

    /// All timers due at this moment; what becomes due meanwhile waits for a later pass (rule TM-24).
    private func fireDueTimers() {
        let now = LoopClock.now
        for due in loop.state.withLock({ $0.modes[mode].timers.due(at: now) }) {
            // An earlier one of the batch may have invalidated, moved or removed it, or a nested run fired it.
            if loop.state.withLock({ $0.take(due, from: mode) }) { due.timer.fire(from: loop) }
        }
    }

    /// - Returns: Whether a source was called.
    private func serveDescriptor() -> Bool {
        while let (source, events) = modeLoop.nextReady() {
            if loop.serve(source, events: events) { return true }
        }
        return false
    }
}

extension RunLoop.RunLimit {
    var instant: LoopInstant {
        switch self {
        case .immediately: LoopInstant(nanoseconds: 0)
        case .at(let instant): instant
        case .never: .never
        }
    }

    func isReached(at now: LoopInstant) -> Bool { now >= instant }
}
