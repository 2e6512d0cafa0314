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
///     │ (h) sleep          │             if this pass may sleep; instead of a sleep, notifications for an idle loop
///     │ (i) afterWaiting   ┘
///     │ (j) one of: all due timers, the main queue, one descriptor source, or nothing
///     │ (k) blocks, and then notifications to be posted as soon as possible
///     └ (l) handled? timed out? stopped? empty?
///     exit observers, and notifications that they have enqueued
///
/// Besides the sleep a pass waits in one place: after several blocks in (c), (e) or (k) it pauses for less
/// than a microsecond, so that more of them come together (`BlockIntake.pauseForMoreBlocks()`).
///
/// libev calls no user code: `ModeLoop` records which descriptors are ready, and (j) calls out. Every lock is
/// released before a call-out, and decisions made before it are checked again after it. Loop's thread only.
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
        var findings = PassFindings(hasWork: hasWork || isObserved)
        while result == nil { result = runOnce(&findings) }
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

    private func runOnce(_ findings: inout PassFindings) -> RunLoop.RunResult? {
        let began = Trace.isListening.load(ordering: .relaxed) ? LoopClock.systemNow : nil
        loop.threadState.beginPass()
        findings.beginPass()
        // Since the last pass this thread has called only observers, which may have made work. (Signals of
        // other threads are found at the end of the pass, as if they had come a moment later.)
        if notify(.beforeTimers) { findings.hasWork = true }
        if notify(.beforeSources) { findings.hasWork = true }
        if callStartClosures() { findings.noteStartClosures() }
        if !loop.intake.isEmpty || findings.hasWork { performBlocksAndSources(&findings) }
        if !loop.threadState.deferred.isEmpty, mustPerformDeferredWork(findings) {
            performDeferredWork(&findings)
        }
        if mustDrainMainQueue(findings) {
            drainMainQueue()
            findings.mainQueueTurn = .drained
            findings.noteCall()
            findings.noteHandled()
        } else {
            waitAndServe(&findings)
        }
        let result = mustEndAtOnce(findings) ? .timedOut : exitCheck(&findings)
        // Passes that call nothing, because other threads only wake the loop, must notice that time passes.
        if result == nil { loop.threadState.forgetNow() }
        if let began { traceEnd(of: findings, began) }
        return result
    }

    /// - Returns: Whether one was called.
    private func callStartClosures() -> Bool {
        loop.hints.mayHave(.orderedPerforms) && ModePerforms(loop: loop, mode: mode).callDue()
    }

    /// (c), (d) and (e).
    private func performBlocksAndSources(_ findings: inout PassFindings) {
        findings.noteCall()
        performBlocks()
        guard performSignalledSources() else { return }
        findings.noteHandled()
        performBlocks()
    }

    /// (f)
    private func mustDrainMainQueue(_ findings: PassFindings) -> Bool {
        loop.isMain && findings.mainQueueTurn == .due && mainQueueHasWork
    }

    /// (g) to (j)
    // Inlined, as `mustEndAtOnce(_:)` is: without, bench-guard's descriptor.event.together takes 4.5 % more
    // instructions, and pass.other-mode 3.9 %.
    @inline(__always)
    private func waitAndServe(_ findings: inout PassFindings) {
        findings.maySleep =
            !findings.handled && !limit.isImmediate && !findings.hasPerformed && !hasNotifications
        if findings.maySleep, notify(.beforeWaiting) { findings.knowsTimers = false }
        let timersAreDue = timersAreDue(from: findings) ?? look(&findings)
        if findings.maySleep { notify(.afterWaiting) }
        let served = serveReady(timersAreDue: timersAreDue)
        findings.mainQueueTurn = (served?.mainQueue ?? false) ? .drained : .due
        guard let served else { return }
        findings.noteCall()
        if served.source || served.mainQueue { findings.noteHandled() }
    }

    /// Whether the run can end at once. A block that another thread queues now is performed by the next run.
    // Inlined: the figure stands at `waitAndServe(_:)`.
    @inline(__always)
    private func mustEndAtOnce(_ findings: PassFindings) -> Bool {
        limit.isImmediate && !findings.mayHaveCalled && loop.intake.isEmpty && !hasNotifications
    }

    private func traceEnd(of findings: PassFindings, _ began: LoopInstant) {
        var activities: RunLoop.Activity = [.beforeTimers, .beforeSources]
        if findings.maySleep { activities.formUnion([.beforeWaiting, .afterWaiting]) }
        let lasted = LoopClock.systemNow.nanoseconds - began.nanoseconds
        Trace.tell(loop, mode, .pass(activities, nanoseconds: lasted), began: began)
    }

    /// (k) and (l): if several conditions hold, the first in this order is the result (rule RL-28).
    private func exitCheck(_ findings: inout PassFindings) -> RunLoop.RunResult? {
        var facts = ExitFacts.hasBlocks
        if loop.intake.isEmpty { facts = askFacts(&findings) }
        if facts.contains(.hasBlocks) {
            performBlocks()
            facts = askFacts(&findings)
        }
        if hasNotifications, notifications.post(.asap) { facts = askFacts(&findings) }
        if findings.handled && activation.returnAfterSourceHandled { return .handledSource }
        switch limit {
        case .immediately: return .timedOut
        case .at(let instant): if loop.now >= instant { return .timedOut }
        case .never: break
        }
        return facts.contains(.isStopped) ? .stopped : facts.contains(.isEmpty) ? .finished : nil
    }

    /// Reads the facts for the exit check and for the next pass in one step, under the lock.
    private func askFacts(_ findings: inout PassFindings) -> ExitFacts {
        loop.state.withLock { [mode, loop, modeLoop] state in
            findings.hasWork = state.hasWork(for: mode)
            findings.knowsTimers = !modeLoop.ready.isEmpty
            if findings.knowsTimers {
                findings.nearestTimer = state.withTimers(of: mode) { $0.nearest } ?? .never
            }
            var facts: ExitFacts = []
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

    /// Whether deferred work has to be done now, rather than wait for the callbacks of ready descriptors. It
    /// does not wait for timers and the main queue, which may take any time.
    private func mustPerformDeferredWork(_ findings: PassFindings) -> Bool {
        let threadState = loop.threadState
        return modeLoop.ready.isEmpty || threadState.deferred.isFull
            || threadState.deferred.isOverdue(at: loop.now)
            || limit.isReached(at: loop.now) || loop.hints.isObserved || hasDueTimers(findings)
            || loop.isMain && mainQueueHasWork
    }

    private func hasDueTimers(_ findings: PassFindings) -> Bool {
        if findings.knowsTimers { return isDue(findings.nearestTimer) }
        return isDue(loop.state.withLock { [mode] in $0.modes[mode].timers.nearest ?? .never })
    }

    /// The step of the pass that does deferred work. Sources that the work signals are served here, by (d)
    /// and (e), unless this pass has already served signalled sources; then the next pass serves them.
    @inline(never)
    private func performDeferredWork(_ findings: inout PassFindings) {
        findings.noteCall()
        while !loop.threadState.deferred.isEmpty {
            let hasSignalled = loop.threadState.performDeferredWork(of: loop)
            guard hasSignalled, !findings.handled, performSignalledSources() else { continue }
            findings.noteHandled()
            performBlocks()
        }
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
