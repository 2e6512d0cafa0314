// (h): the loop sleeps until something has happened, or just looks.
extension Pass {
    /// While descriptors found earlier wait to be served, nothing but the nearest timer decides what is served now,
    /// and that is known if nobody has been called and nobody has asked for attention since the last pass.
    ///
    /// - Returns: Whether timers are due; nil: `look(maySleep:)` tells.
    @inline(__always)
    func timersAreDue(from outset: Outset) -> Bool? {
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
    func look(maySleep: Bool) -> Bool {
        var wasWoken = false
        while true {
            let now = loop.now
            let asksKernel = modeLoop.ready.isEmpty
            let isLast = limit.isReached(at: now)
            let spins = spins
            let outlook = loop.state.withLock { [mode, wasWoken, loop] in
                $0.prepareToLook(
                    mode: mode, now: now,
                    maySleep: maySleep && asksKernel && !isLast && !wasWoken
                        && loop.owner.deferred.isEmpty,
                    updatesWatchers: asksKernel || isLast, spins: spins, loop.attention)
            }
            wasWoken = wasWoken || outlook.wasWoken
            if loop.isMain {
                modeLoop.setWatchesMainQueue(outlook.isCommon && !loop.owner.isDrainingMainQueue)
            }
            if outlook.hasLeaves {
                loop.endLeaves(ofMode: mode)
                continue
            }
            if let changes = outlook.changes {
                loop.apply(changes, to: modeLoop, ofMode: mode)
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
            let hasTimer = loop.owner.kernel.armTimer(noLaterThan: instant, now: now)
            return modeLoop.poll(mayBlock: true, until: instant, hasTimer: hasTimer)
        }
        // Under a clock of the loop's own, time does not pass by itself: what is there is looked at, then the
        // clock is asked, and only if that stands still as well the loop sleeps.
        modeLoop.poll(mayBlock: false)
        let isIdle =
            modeLoop.ready.isEmpty && !modeLoop.mainQueueIsReady && !loop.attention.wasAsked
        guard isIdle, !source.loopIsIdle(until: instant) else { return }
        loop.owner.kernel.armTimer(noLaterThan: .never, now: now)
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
}
