/// The passes of one activation of a run loop.
///
/// The order of call-outs is that of rule RL-52. It is defined only here, from top to bottom:
///
///     entry observers
///     ┌ (a) beforeTimers                 every pass
///     │ (b) beforeSources                every pass
///     │     closures for the start of a pass
///     │ (c) queued blocks
///     │ (d) signalled sources            all, or the first if the caller wants to return then
///     │ (e) blocks again                 if (d) served something
///     │     deferred work                if it is to wait no longer; (d) and (e) for sources that it signals
///     │ (f) the main queue               straight to (j) if it has work and was not drained last time
///     │ (g) beforeWaiting  ┐
///     │ (h) sleep          │             only if this pass may sleep; instead of a sleep, notifications for an
///     │                    │             idle loop
///     │ (i) afterWaiting   ┘
///     │ (j) one of: all due timers, the main queue, one descriptor source, or nothing
///     │ (k) blocks, and then notifications to be posted as soon as possible
///     └ (l) handled? timed out? stopped? empty?
///     exit observers, and notifications that they have enqueued
///
/// libev calls no user code: `ModeLoop` records which descriptors are ready, and (j) calls out. Every lock is
/// released before a call-out, and decisions made before it are checked again after it.
///
/// Loop's thread only.
struct Pass {
    let activation: Activation
    /// The index of the mode.
    let mode: Int
    let modeLoop: ModeLoop

    var loop: RunLoop { activation.loop }
    var limit: RunLimit { activation.limit }

    /// - Parameter hasWork: Whether blocks are queued or sources signalled when the activation begins.
    func run(hasWork: Bool) -> RunLoop.RunResult {
        if Trace.isListening.load(ordering: .relaxed) { Trace.tell(loop, mode, .entry) }
        let isObserved = notify(.entry)
        var result: RunLoop.RunResult?
        // Only an observer can have stopped an activation that has just begun.
        if isObserved, loop.state.withLock({ $0.isStopped }) { result = .stopped }
        var drainedMainQueue = true
        var start = StartingFacts(hasWork: hasWork || isObserved)
        while result == nil { result = runOnce(&drainedMainQueue, &start) }
        if !activation.isRepeated {
            loop.threadState.stopDeferring()
            loop.threadState.performAllDeferredWork(of: loop)
        }
        notify(.exit)
        if hasNotifications { notifications.post(.asap) }
        // The loop above ends only with a result.
        let ended = result ?? .finished
        if Trace.isListening.load(ordering: .relaxed) { Trace.tell(loop, mode, .exit(ended)) }
        return ended
    }

    /// The facts with which a pass begins, as known at the end of the previous one.
    struct StartingFacts {
        /// Blocks are queued or sources signalled: there is work for (c) or (d).
        var hasWork: Bool
        /// `nearestTimer` is known: ready descriptors waited to be served, and nothing has been called since.
        var knowsTimers = false
        /// `.never` if there is no timer.
        var nearestTimer = LoopInstant.never
    }

    /// - Parameter start: The facts with which this pass begins; on return, those for the next one.
    private func runOnce(_ drainedMainQueue: inout Bool, _ start: inout StartingFacts) -> RunLoop.RunResult? {
        let began = Trace.isListening.load(ordering: .relaxed) ? LoopClock.systemNow : nil
        loop.threadState.beginPass()
        var activities: RunLoop.Activity = [.beforeTimers, .beforeSources]
        // Since the last pass this thread has called only observers, which may have made work. (Signals of
        // other threads are found at the end of the pass, as if they had come a moment later.)
        if notify(.beforeTimers) { start.hasWork = true }
        if notify(.beforeSources) { start.hasWork = true }
        // This pass must not sleep: the called closures may have been the mode's only members.
        let hasPerformed =
            loop.hints.mayHave(.orderedPerforms) && ModePerforms(loop: loop, mode: mode).callDue()
        if hasPerformed { start.hasWork = true }
        var handled = false
        var mayHaveCalled = false
        if !loop.intake.isEmpty || start.hasWork {
            mayHaveCalled = true
            start.knowsTimers = false
            performBlocks()
            handled = performSignalledSources()
            if handled { performBlocks() }
        }
        if !loop.threadState.deferred.isEmpty, mustPerformDeferredWork(start) {
            mayHaveCalled = true
            start.knowsTimers = false
            handled = performDeferredWork(handled: handled)
        }

        if loop.isMain, !drainedMainQueue, mainQueueHasWork {
            drainMainQueue()
            drainedMainQueue = true
            handled = true
            mayHaveCalled = true
        } else {
            let maySleep = !handled && !limit.isImmediate && !hasPerformed && !hasNotifications
            if maySleep {
                activities.formUnion([.beforeWaiting, .afterWaiting])
                if notify(.beforeWaiting) { start.knowsTimers = false }
            }
            let timersAreDue =
                timersAreDue(from: start) ?? look(maySleep: maySleep, &mayHaveCalled)
            if maySleep { notify(.afterWaiting) }
            let served = serveReady(timersAreDue: timersAreDue)
            drainedMainQueue = served?.mainQueue ?? false
            if let served {
                mayHaveCalled = true
                if served.source || served.mainQueue { handled = true }
            }
        }
        // If nothing was called, this thread has queued no block. A block that another thread queues meanwhile is performed by the
        // next run, as if it had come a moment later.
        let isOver = limit.isImmediate && !mayHaveCalled && loop.intake.isEmpty && !hasNotifications
        let result = isOver ? .timedOut : exitCheck(handled: handled, &start)
        // Passes that call nothing, because other threads only wake the loop, must notice that time passes.
        if result == nil { loop.threadState.forgetNow() }
        if let began {
            let lasted = LoopClock.systemNow.nanoseconds - began.nanoseconds
            Trace.tell(loop, mode, .pass(activities, nanoseconds: lasted), began: began)
        }
        return result
    }

    /// (k) and (l): if several conditions hold, the first in this order is the result (rule RL-28).
    private func exitCheck(handled: Bool, _ start: inout StartingFacts) -> RunLoop.RunResult? {
        var facts = Facts.hasBlocks
        if loop.intake.isEmpty { facts = askFacts(&start) }
        if facts.contains(.hasBlocks) {
            performBlocks()
            facts = askFacts(&start)
        }
        if hasNotifications, notifications.post(.asap) { facts = askFacts(&start) }
        if handled && activation.returnAfterSourceHandled { return .handledSource }
        switch limit {
        case .immediately: return .timedOut
        case .at(let instant): if loop.now >= instant { return .timedOut }
        case .never: break
        }
        return facts.contains(.isStopped) ? .stopped : facts.contains(.isEmpty) ? .finished : nil
    }

    /// The conditions that decide whether the activation ends.
    private struct Facts: OptionSet {
        let rawValue: UInt8

        static let hasBlocks = Facts(rawValue: 1)
        static let isStopped = Facts(rawValue: 2)
        static let isEmpty = Facts(rawValue: 4)
    }

    /// Reads the facts for the exit check and for the next pass in one step, under the lock.
    private func askFacts(_ start: inout StartingFacts) -> Facts {
        loop.state.withLock { [mode, loop, modeLoop] state in
            start = StartingFacts(hasWork: state.hasWork(for: mode))
            if !modeLoop.ready.isEmpty {
                start.knowsTimers = true
                start.nearestTimer = state.withTimers(of: mode) { $0.nearest } ?? .never
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

    var notifications: ModeNotifications { ModeNotifications(loop: loop, mode: mode) }

    /// Whether notifications wait that this mode posts at the end of the pass.
    var hasNotifications: Bool { loop.hints.mayHave(.notifications) && notifications.has(.asap) }

    // MARK: - Observers, blocks, signalled sources

    /// - Returns: Whether an observer was called.
    @discardableResult
    private func notify(_ activity: RunLoop.Activity) -> Bool {
        loop.hints.mayBeObserved(activity.rawValue) && notifyObservers(of: activity)
    }

    private func notifyObservers(of activity: RunLoop.Activity) -> Bool {
        let observers = loop.state.withLock { state -> [RunLoop.Observer] in
            guard !state.modes[mode].observedActivities.isDisjoint(with: activity) else { return [] }
            return state.modes[mode].observers.filter { $0.activities.contains(activity) }
        }
        for observer in observers { observer.notify(activity, in: mode, of: loop) }
        return !observers.isEmpty
    }

    /// Runs the waiting blocks. A block that one of them queues waits for the next block point (rule RL-63).
    private func performBlocks() {
        // Taken out of the thread state, because a block may run the loop again.
        var blocks = PerformedBlocks()
        loop.threadState.exchangeSpareBlocks(&blocks)
        loop.state.withLock { [mode, loop] in $0.takeBlocks(for: mode, loop.intake, into: &blocks) }
        let wereSeveral = blocks.count > 1
        while let block = blocks.popFirst() { Trace.callOut(loop, mode, .block) { block.run() } }
        blocks.shrink()
        loop.threadState.exchangeSpareBlocks(&blocks)
        if wereSeveral { loop.intake.pauseForMoreBlocks() }
    }

    /// Whether deferred work has to be done now, rather than wait for the callbacks of ready descriptors. It does not wait for
    /// timers and the main queue, which may take any time.
    private func mustPerformDeferredWork(_ start: StartingFacts) -> Bool {
        let threadState = loop.threadState
        return modeLoop.ready.isEmpty || threadState.deferred.isFull
            || threadState.deferred.isOverdue(at: loop.now)
            || limit.isReached(at: loop.now) || loop.hints.isObserved || hasDueTimers(start)
            || loop.isMain && mainQueueHasWork
    }

    private func hasDueTimers(_ start: StartingFacts) -> Bool {
        let nearest =
            start.knowsTimers
            ? start.nearestTimer : loop.state.withLock { [mode] in $0.modes[mode].timers.nearest ?? .never }
        return isDue(nearest)
    }

    /// The step of the pass that does deferred work. Sources that the work signals are served here, by (d)
    /// and (e), unless this pass has already served signalled sources; then the next pass serves them.
    ///
    /// - Returns: Whether signalled sources were served in this pass.
    @inline(never)
    private func performDeferredWork(handled: Bool) -> Bool {
        var handled = handled
        while !loop.threadState.deferred.isEmpty {
            let hasSignalled = loop.threadState.performDeferredWork(of: loop)
            guard hasSignalled, !handled, performSignalledSources() else { continue }
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
        if count == 1 { return first.performIfSignalled(in: mode, of: loop) }
        return activation.returnAfterSourceHandled ? performFirstSignalledSource() : performSignalledBatch()
    }

    /// The others stay signalled for the next run (rule SRC-7).
    private func performFirstSignalledSource() -> Bool {
        while let first = loop.state.withLock({ [mode] in $0.modes[mode].signalled.first }) {
            // Otherwise another loop or mode has served it, and this mode has forgotten it now.
            if first.performIfSignalled(in: mode, of: loop) { return true }
        }
        return false
    }

    private func performSignalledBatch() -> Bool {
        let sources = loop.state.withLock { [mode] in $0.modes[mode].signalled.all }
        let batch = sources.filter { $0.forgetUnlessSignalled(in: mode, of: loop) }
        var performed = false
        // Each stays signalled until it is performed, so that a nested run can serve it.
        for source in batch where source.performIfSignalled(in: mode, of: loop) { performed = true }
        return performed
    }
}
