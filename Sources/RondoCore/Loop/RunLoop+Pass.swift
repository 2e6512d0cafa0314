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
///     │     deferred work                if none of (j)'s descriptors waits; then (d), (e) for what it signals
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
    let name: RunLoop.Mode
    let modeLoop: ModeLoop
    let limit: RunLoop.RunLimit
    let returnAfterSourceHandled: Bool
    /// Another one follows at once.
    let isRepeated: Bool

    /// - Parameter hasWork: Whether blocks are queued or sources signalled, as the activation begins.
    func run(hasWork: Bool) -> RunLoop.RunResult {
        if Trace.isListening.load(ordering: .relaxed) { Trace.tell(loop, mode, .entry) }
        let isObserved = notify(.entry)
        var result: RunLoop.RunResult?
        // Only an observer can have stopped what has just begun.
        if isObserved, loop.state.withLock({ $0.isStopped }) { result = .stopped }
        var drainedMainQueue = true
        var outset = Outset(hasWork: hasWork || isObserved)
        while result == nil { result = runOnce(&drainedMainQueue, &outset) }
        if !isRepeated {
            // No pass follows for what would be deferred from here on.
            loop.owner.run.mayDeferWork = false
            loop.performAllDeferredWork()
        }
        notify(.exit)
        // The loop above ends only with a result.
        let ended = result ?? .finished
        if Trace.isListening.load(ordering: .relaxed) { Trace.tell(loop, mode, .exit(ended)) }
        return ended
    }

    /// What a pass begins with, as it was when the last one ended.
    private struct Outset {
        /// There is work for (c) or (d).
        var hasWork: Bool
        /// `nearestTimer` is known: there was something to serve, and nobody has been called since.
        var knowsTimers = false
        /// `.never`: there is none.
        var nearestTimer = LoopInstant.never
    }

    /// - Parameter outset: How this pass begins, and then how the next one does.
    private func runOnce(_ drainedMainQueue: inout Bool, _ outset: inout Outset) -> RunLoop.RunResult? {
        let began = Trace.isListening.load(ordering: .relaxed) ? LoopClock.now : nil
        var activities: RunLoop.Activity = [.beforeTimers, .beforeSources]
        // Nothing of this thread's is called in between but observers, who may have made work. (What other threads have
        // signalled since is found at the end of the pass, as if it had come a moment later.)
        if notify(.beforeTimers) { outset.hasWork = true }
        if notify(.beforeSources) { outset.hasWork = true }
        var handled = false
        if !loop.intake.isEmpty || outset.hasWork {
            outset.knowsTimers = false
            performBlocks()
            handled = performSignalledSources()
            if handled { performBlocks() }
        }
        if !loop.owner.deferred.isEmpty, mustPerformDeferredWork {
            outset.knowsTimers = false
            handled = performDeferredWork(handled: handled)
        }

        if !drainedMainQueue, loop.mainQueueHasWork(in: mode) {
            loop.drainMainQueue(in: mode, modeLoop)
            drainedMainQueue = true
            handled = true
        } else {
            let maySleep = !handled && !pollsOnly
            if maySleep {
                activities.formUnion([.beforeWaiting, .afterWaiting])
                if notify(.beforeWaiting) { outset.knowsTimers = false }
            }
            let timersAreDue = timersAreDue(from: outset) ?? look(maySleep: maySleep)
            if maySleep { notify(.afterWaiting) }
            let served = serveWhatIsReady(timersAreDue: timersAreDue)
            drainedMainQueue = served.mainQueue
            if served.source || served.mainQueue { handled = true }
        }
        let result = exitCheck(handled: handled, &outset)
        if let began {
            let lasted = LoopClock.now.nanoseconds - began.nanoseconds
            Trace.tell(loop, mode, .pass(activities, nanoseconds: lasted), began: began)
        }
        return result
    }

    /// (k) and (l): where several hold, the first in this order is the result (rule RL-28).
    @inline(__always)
    private func exitCheck(handled: Bool, _ outset: inout Outset) -> RunLoop.RunResult? {
        var facts = Facts.hasBlocks
        if loop.intake.isEmpty { facts = askFacts(&outset) }
        if facts.contains(.hasBlocks) {
            performBlocks()
            facts = askFacts(&outset)
        }
        if handled && returnAfterSourceHandled { return .handledSource }
        switch limit {
        case .immediately: return .timedOut
        case .at(let instant): if loop.now >= instant { return .timedOut }
        case .never: break
        }
        return facts.contains(.isStopped) ? .stopped : facts.contains(.isEmpty) ? .finished : nil
    }

    /// What decides whether the activation ends.
    private struct Facts: OptionSet {
        let rawValue: UInt8

        static let hasBlocks = Facts(rawValue: 1)
        static let isStopped = Facts(rawValue: 2)
        static let isEmpty = Facts(rawValue: 4)
    }

    /// Asks for the facts and for what the next pass begins with, in one step.
    private func askFacts(_ outset: inout Outset) -> Facts {
        loop.state.withLock { [mode, loop, modeLoop] state in
            outset = Outset(hasWork: state.hasWork(for: mode))
            if !modeLoop.ready.isEmpty {
                outset.knowsTimers = true
                outset.nearestTimer = state.withTimers(of: mode) { $0.nearest } ?? .never
            }
            var facts: Facts = []
            if state.hasQueuedBlocks(for: mode) { facts.insert(.hasBlocks) }
            if state.isStopped { facts.insert(.isStopped) }
            if state.isEmpty(mode, loop.intake), !loop.drainsMainQueue(in: state.modes[mode]) {
                facts.insert(.isEmpty)
            }
            return facts
        }
    }

    private var pollsOnly: Bool { if case .immediately = limit { true } else { false } }

    // MARK: - Observers, blocks, signalled sources

    /// - Returns: Whether anybody was called, who may be gone since.
    @inline(__always)
    @discardableResult
    private func notify(_ activity: RunLoop.Activity) -> Bool {
        loop.mayBeObserved(activity) && notifyObservers(of: activity)
    }

    private func notifyObservers(of activity: RunLoop.Activity) -> Bool {
        let observers = loop.state.withLock { state -> [RunLoop.Observer] in
            guard !state.modes[mode].observedActivities.isDisjoint(with: activity) else { return [] }
            return state.modes[mode].observers.filter { $0.activities.contains(activity) }
        }
        for observer in observers { observer.notify(activity, in: mode, of: loop) }
        return !observers.isEmpty
    }

    /// A block queued by one of these waits for the next block point (rule RL-63).
    private func performBlocks() {
        // Taken out, since a block may run the loop again.
        var blocks = PerformedBlocks()
        swap(&blocks, &loop.owner.spareBlocks)
        loop.state.withLock { [mode, loop] in $0.takeBlocks(for: mode, loop.intake, into: &blocks) }
        while let block = blocks.popFirst() { Trace.callOut(loop, mode, .block) { block.run() } }
        blocks.shrink()
        swap(&blocks, &loop.owner.spareBlocks)
    }

    /// Whether deferred work waits no longer for the callbacks of descriptors that were found ready before.
    private var mustPerformDeferredWork: Bool {
        let deferred = loop.owner.deferred
        return modeLoop.ready.isEmpty || deferred.isFull || deferred.isOverdue(at: loop.now)
            || limit.isReached(at: loop.now) || loop.mayBeObserved(.allActivities)
    }

    /// The step of the pass in which deferred work is done. What that signals is served here, by (d) and (e), unless this
    /// pass has served signalled sources before; then in the next one.
    ///
    /// - Returns: Whether signalled sources were served in this pass.
    @inline(never)
    private func performDeferredWork(handled: Bool) -> Bool {
        var handled = handled
        while !loop.owner.deferred.isEmpty {
            guard loop.performDeferredWork(), !handled, performSignalledSources() else { continue }
            handled = true
            performBlocks()
        }
        return handled
    }

    /// - Returns: Whether any was performed.
    private func performSignalledSources() -> Bool {
        let (count, first) = loop.state.withLock { [mode] state in
            (state.modes[mode].signalled.count, state.modes[mode].signalled.first)
        }
        guard let first else { return false }
        // One alone needs no order.
        if count == 1 { return first.performIfSignalled(in: mode, of: loop) }
        let sources = loop.state.withLock { [mode] in $0.modes[mode].signalled }
        let batch =
            sources
            .compactMap { source in source.signal(in: mode, of: loop).map { (source: source, signal: $0) } }
            .sorted { ($0.source.order, $0.signal) < ($1.source.order, $1.signal) }
        var performed = false
        // Each stays signalled until its turn, so that a nested run serves it, and the next run what this one
        // leaves.
        for entry in batch where entry.source.performIfSignalled(in: mode, of: loop) {
            performed = true
            if returnAfterSourceHandled { break }
        }
        return performed
    }

    // MARK: - The look at the kernel

    /// While descriptors found earlier wait to be served, nothing but the nearest timer decides what is served now,
    /// and that is known if nobody has been called and nobody has asked for attention since the last pass.
    ///
    /// - Returns: Whether timers are due; nil: `look(maySleep:)` tells.
    @inline(__always)
    private func timersAreDue(from outset: Outset) -> Bool? {
        guard outset.knowsTimers, !modeLoop.ready.isEmpty, !loop.attention.wasAsked,
            !limit.isReached(at: loop.now)
        else { return nil }
        return isDue(outset.nearestTimer)
    }

    private func isDue(_ timer: LoopInstant) -> Bool { timer != .never && timer <= loop.now }

    /// (h): sleeps until something real has happened, or just looks.
    ///
    /// While descriptors found earlier wait to be served, the kernel is not asked (rule RL-57), and what changed
    /// about those that are watched can wait as well: who is called is a member that wants it in any case. Not in
    /// the last pass before the limit, which serves what is ready now. A sleep can
    /// end without cause (a signal, a stale registration, libev's own minute); it goes on then, or observers
    /// would see waits that were none.
    ///
    /// - Returns: Whether timers are due.
    private func look(maySleep: Bool) -> Bool {
        var wasWoken = false
        while true {
            let now = loop.now
            let asksKernel = modeLoop.ready.isEmpty
            let isLast = limit.isReached(at: now)
            let spins = spins
            let outlook = loop.state.withLock { [mode, wasWoken, loop] in
                $0.prepareToLook(
                    mode: mode, now: now,
                    // An observer may have deferred work since that was done, and has run the loop inside.
                    maySleep: maySleep && asksKernel && !isLast && !wasWoken
                        && loop.owner.deferred.isEmpty,
                    updatesWatchers: asksKernel || isLast, spins: spins, loop.attention)
            }
            wasWoken = wasWoken || outlook.wasWoken
            if loop.isMain {
                modeLoop.setWatchesMainQueue(outlook.isCommon && !loop.owner.isDrainingMainQueue)
            }
            if outlook.hasLeaves {
                loop.endLeaves(of: mode)
                continue
            }
            if let changes = outlook.changes {
                loop.updateWatchers(changes, in: modeLoop, mode)
                continue
            }
            if !outlook.waits {
                if modeLoop.ready.isEmpty { modeLoop.pollWhatIsWatched() }
                return outlook.nearestTimer.map { $0 <= now } ?? false
            }
            // `now` may have been read before observers were called.
            let fellAsleep = Trace.isListening.load(ordering: .relaxed) ? LoopClock.now : nil
            wait(until: min(outlook.nearestTimer ?? .never, limit.instant), now: now, spins: spins)
            loop.owner.knownNow = nil
            loop.attention.endWaiting()
            if let fellAsleep {
                let lasted = LoopClock.now.nanoseconds - fellAsleep.nanoseconds
                Trace.tell(loop, mode, .wait(nanoseconds: lasted), began: fellAsleep)
            }
            if !modeLoop.ready.isEmpty || modeLoop.mainQueueIsReady {
                return timersAreDue(nearest: outlook.nearestTimer ?? .never)
            }
            // Whether it was a timer, the limit, a wake-up or nothing at all shows in the next round.
        }
    }

    func sleep(until instant: LoopInstant, now: LoopInstant) {
        guard let source = loop.owner.timeSource else {
            let hasTimer = loop.armTimer(noLaterThan: instant, now: now)
            return modeLoop.poll(mayBlock: true, until: instant, hasTimer: hasTimer)
        }
        // Under a clock of the loop's own, time does not pass by itself: what is there is looked at, then the
        // clock is asked, and only if that stands still as well the loop sleeps.
        modeLoop.poll(mayBlock: false)
        let isIdle =
            modeLoop.ready.isEmpty && !modeLoop.mainQueueIsReady && !loop.attention.wasAsked
        guard isIdle, !source.loopIsIdle(until: instant) else { return }
        loop.armTimer(noLaterThan: .never, now: now)
        modeLoop.poll(mayBlock: true)
    }

    /// - Parameter nearest: The nearest timer as it was before the wait.
    private func timersAreDue(nearest: LoopInstant) -> Bool {
        // Whoever made one nearer meanwhile has asked for attention. (That one was taken back is found out.)
        guard loop.attention.wasAsked else { return isDue(nearest) }
        return isDue(
            loop.state.withLock { [mode, loop] state in
                // Attention that was asked for until now has been given.
                _ = state.takeRequest(loop.attention)
                return state.modes[mode].timers.nearest ?? .never
            })
    }

    // MARK: - (j)

    /// - Returns: Whether a source was called, and whether the main queue was drained.
    private func serveWhatIsReady(timersAreDue: Bool) -> (source: Bool, mainQueue: Bool) {
        // As it is nearly always: only descriptors are ready, so it is their turn.
        if !timersAreDue, !modeLoop.mainQueueIsReady {
            guard !modeLoop.ready.isEmpty else { return (false, false) }
            modeLoop.turn = EventKind.descriptors.next
            return (serveDescriptor(), false)
        }
        var served = (source: false, mainQueue: false)
        for kind in kindsToServe(timersAreDue: timersAreDue) {
            switch kind {
            case .timers:
                fireDueTimers()
            case .mainQueue:
                loop.drainMainQueue(in: mode, modeLoop)
                served.mainQueue = true
            case .descriptors:
                served.source = serveDescriptor()
            }
        }
        return served
    }

    /// One kind a pass, in turns; where the limit is reached, every kind that is ready (rules RL-31 and
    /// RL-52).
    private func kindsToServe(timersAreDue: Bool) -> EventKinds {
        let isLast = limit.isReached(at: loop.now)
        var found = EventKinds()
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
                if !isLast { break }
            }
            kind = kind.next
        }
        if let last = found.last { modeLoop.turn = last.next }
        return found
    }

    /// All timers due at this moment; what becomes due meanwhile waits for a later pass (rule TM-24).
    private func fireDueTimers() {
        let now = loop.now
        loop.state.withLock { [mode] in $0.modes[mode].timers.collectDue(at: now) }
        while let timer = loop.state.withLock({ [mode] in $0.takeDueTimer(in: mode) }) {
            timer.fire(in: mode, of: loop)
        }
    }

    /// - Returns: Whether a source was called.
    private func serveDescriptor() -> Bool {
        while let (source, events) = modeLoop.nextReady() {
            // Nobody is called before `serve` holds it.
            let served = source._withUnsafeGuaranteedRef {
                loop.serve($0, events: events, in: mode, named: name)
            }
            if served { return true }
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

    /// - Parameter now: Asked for only where it decides.
    func isReached(at now: @autoclosure () -> LoopInstant) -> Bool {
        switch self {
        case .immediately: true
        case .at(let instant): now() >= instant
        case .never: false
        }
    }
}
