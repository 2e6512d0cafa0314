// (h): the loop sleeps until something has happened, or only looks.
extension Pass {
    /// A shortcut past the look: while ready descriptors wait to be served, only the nearest timer decides
    /// which kind of event is served now. That timer is known if nothing was called and no attention was
    /// asked for since the last pass.
    ///
    /// - Returns: Whether timers are due; nil if `look(_:)` has to find out.
    // Inlined: without, bench-guard's pass.other-mode and descriptor.event.together take 2.3 % more
    // instructions.
    @inline(__always)
    func timersAreDue(from findings: PassFindings) -> Bool? {
        guard findings.knowsTimers, !modeLoop.ready.isEmpty, !loop.attention.wasAsked,
            !limit.isReached(at: loop.now)
        else { return nil }
        return isDue(findings.nearestTimer)
    }

    func isDue(_ timer: LoopInstant) -> Bool { timer != .never && timer <= loop.now }

    /// (h): sleeps until an event has happened, or only looks.
    ///
    /// While ready descriptors wait to be served, the kernel is not asked (rule RL-57), and changes to
    /// watchers can wait too: before a source is called, its membership and interest are checked. In the last
    /// pass before the limit the changes are applied, since that pass serves everything that is ready. In the
    /// first pass of an activation the main queue is asked: a program that runs the loop again after each
    /// source would otherwise leave it until all of these descriptors have been served. A sleep can end
    /// without an event (a signal, a stale registration, libev's own limit of a minute); it is then
    /// continued, because observers would otherwise see waits that were none.
    ///
    /// - Returns: Whether timers are due.
    func look(_ findings: inout PassFindings) -> Bool {
        var wasWoken = false
        while true {
            if let bridge = loop.threadState.bridge {
                findings.noteCall()
                serveIfOverdue(bridge)
            }
            if modeLoop.hasInterrupted { watchInterrupted() }
            let now = loop.now
            let asksKernel = modeLoop.ready.isEmpty
            let isLast = limit.isReached(at: now)
            let spins = loop.spinsBeforeSleep
            let mayRest =
                findings.maySleep && asksKernel && !isLast && !wasWoken && loop.threadState.deferred.isEmpty
            let isIdleOccasion = hasIdleNotifications && (mayRest || isEmbeddedLook)
            let maySleepNow = mayRest && !isIdleOccasion && !hasNotifications && !modeLoop.mainQueue.owesDrain
            let plan = loop.state.withLock { [mode, loop] in
                $0.prepareToLook(
                    mode: mode, now: now,
                    maySleep: maySleepNow,
                    updatesWatchers: asksKernel || isLast, spins: spins, loop.attention)
            }
            wasWoken = wasWoken || plan.wasWoken
            if loop.isMain {
                let drains = plan.isCommon && !loop.threadState.isDrainingMainQueue
                let borrows = drains && loop.threadState.bridge?.borrowsSleep ?? false
                modeLoop.watchMainQueue(by: !drains ? .none : borrows ? .byAsking : .byDescriptor)
                if !asksKernel, findings.mainQueueTurn == .first { modeLoop.askMainQueue() }
            }
            if let changes = plan.changes {
                apply(changes)
                continue
            }
            if plan.waits {
                let nearest = plan.nearestTimer ?? .never
                sleep(until: min(nearest, limit.instant), now: now, spins: spins)
                if !modeLoop.ready.isEmpty || modeLoop.mainQueue.isReady {
                    return timersAreDue(nearest: nearest)
                }
                // The next round finds out whether a timer, the limit, a wake-up or nothing ended the sleep.
                continue
            }
            if modeLoop.ready.isEmpty { modeLoop.pollWatched() }
            // The next round finds out which of the interrupted sources are ready.
            if modeLoop.hasInterrupted, modeLoop.ready.isEmpty { continue }
            let timersAreDue = plan.nearestTimer.map { $0 <= now } ?? false
            if isIdleOccasion, !timersAreDue, !wasWoken, !hasNotifications {
                findings.noteCall()
                postIdleNotifications()
            }
            return timersAreDue
        }
    }

    private func sleep(until end: LoopInstant, now: LoopInstant, spins: Bool) {
        // The clock is read again: `now` may have been read before observers were called.
        let fellAsleep = Trace.isListening.load(ordering: .relaxed) ? LoopClock.systemNow : nil
        Sleep.run(loop, modeLoop, until: end, now: now, spins: spins)
        loop.threadState.forgetNow()
        loop.attention.endWaiting()
        guard let fellAsleep else { return }
        let lasted = LoopClock.systemNow.nanoseconds - fellAsleep.nanoseconds
        Trace.tell(loop, mode, .wait(nanoseconds: lasted), began: fellAsleep)
    }

    /// Whether notifications wait for the loop to be idle in this mode.
    private var hasIdleNotifications: Bool {
        loop.hints.mayHave(.idleNotifications) && notifications.has(.whenIdle)
    }

    /// Posts the notifications for an idle loop, if it is idle: a look at the kernel has found nothing, and
    /// nothing else waits in the mode. The caller then does not sleep but begins a new pass, because the
    /// observers of these notifications may have made work (rule NQ-7).
    private func postIdleNotifications() {
        guard modeLoop.ready.isEmpty, !modeLoop.mainQueue.isReady, !loop.attention.wasAsked else { return }
        let isIdle = loop.state.withLock { [mode, loop] state in
            !state.isStopped && !state.hasWork(for: mode)
                && !loop.intake.holdsBlocks(for: mode, isCommon: state.modes[mode].isCommon)
        }
        if isIdle { notifications.post(.whenIdle) }
    }

    // Not inlined: the values made in these functions would be made in each look, and bench-guard's
    // pass.other-mode would take 11 % more instructions.

    @inline(never)
    private func watchInterrupted() {
        WatcherUpdate(loop: loop, mode: mode, modeLoop: modeLoop).noteInterrupted()
    }

    @inline(never)
    private func apply(_ changes: ModeState.Changes) {
        WatcherUpdate(loop: loop, mode: mode, modeLoop: modeLoop).apply(changes)
    }

    /// See `FoundationBridge.serveIfOverdue()`.
    private func serveIfOverdue(_ bridge: any FoundationBridge) {
        bridge.serveIfOverdue()
        guard loop.threadState.wasServedAsleep else { return }
        loop.threadState.wasServedAsleep = false
        modeLoop.oweDrain()
    }

    /// Whether this is the only pass of a foreign loop's turn. Where other passes would sleep, this one
    /// returns to the foreign loop.
    private var isEmbeddedLook: Bool {
        guard loop.threadState.isInTurn, modeLoop.ready.isEmpty, loop.threadState.deferred.isEmpty else {
            return false
        }
        return loop.state.withLock { $0.activations.count == 1 }
    }

    /// - Parameter nearest: The nearest timer as known before the wait.
    private func timersAreDue(nearest: LoopInstant) -> Bool {
        // A thread that has scheduled a nearer timer meanwhile has asked for attention. (A timer that was
        // removed meanwhile is not collected as due.)
        guard loop.attention.wasAsked else { return isDue(nearest) }
        return isDue(
            loop.state.withLock { [mode, loop] state in
                // This look serves all requests made until now.
                _ = state.takeRequest(loop.attention)
                return state.modes[mode].timers.nearest ?? .never
            })
    }
}
