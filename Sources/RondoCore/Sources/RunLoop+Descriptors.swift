internal import CEv

extension RunLoop.Source.Interest {
    /// libev's `EV_READ | EV_WRITE`.
    var events: Int32 {
        (contains(.read) ? Int32(EV_READ) : 0) | (contains(.write) ? Int32(EV_WRITE) : 0)
    }

    init(events: Int32) {
        self = []
        if events & Int32(EV_READ) != 0 { insert(.read) }
        if events & Int32(EV_WRITE) != 0 { insert(.write) }
    }
}

// Loop's thread only.
extension RunLoop {
    /// Makes the mode's watchers match its members: first what left, so that a number that was closed and
    /// given out again is free, then what came or changed.
    ///
    /// libev, as Debian builds it, aborts the process when it hands a closed descriptor to the kernel. So
    /// that is done here at once, under the lock that every removal needs: whoever invalidates a source on
    /// another thread and closes its descriptor then, does so before the check or after the kernel knows it.
    func updateWatchers(_ changes: ModeState.Changes, in modeLoop: ModeLoop, _ mode: Int) {
        // The locks of sources come before that of the loop.
        let interests = changes.watch.map(\.interest)
        state.withLock { state in
            for source in changes.stop { modeLoop.unwatch(source) }
            var isChanged = !changes.stop.isEmpty
            for (source, interest) in zip(changes.watch, interests) {
                guard case .descriptor(let descriptor) = source.kind,
                    state.modes[mode].holds(source)
                else { continue }
                // It has left and come back, as a connection does between two requests.
                if source.keepsFile, modeLoop.watches(source, events: interest.events),
                    !owner.serving.contains(source)
                {
                    continue
                }
                isChanged = true
                if let code = modeLoop.refusal(of: descriptor) {
                    modeLoop.refuse(source, code: code)
                    continue
                }
                modeLoop.watch(source, descriptor: descriptor, events: interest.events)
                // A nested run must not find what it cannot serve (rule SRC-26): it would spin.
                if owner.serving.contains(source) { modeLoop.pause(source) }
            }
            if isChanged { modeLoop.applyChanges() }
        }
    }

    /// Takes out what has left `mode` and is not back.
    func endLeaves(of mode: Int) {
        // The locks of sources come before that of the loop. Those that stand last are found first.
        for source in state.withLock({ $0.modes[mode].leaving }).reversed() { source.endLeaving() }
    }

    /// Whether the calling thread's loop has been run again in the callback of a source.
    package static var servesFurtherOut: Bool { currentLoop().owner.run.servedFurtherOut > 0 }

    /// Whether the callback of `source` is on the stack, and the calling thread's loop has been run again in it: in
    /// that run it cannot be served (rule SRC-26).
    package static func isServedFurtherOut(_ source: Source) -> Bool {
        let owner = currentLoop().owner
        let servedFurtherOut = owner.run.servedFurtherOut
        return servedFurtherOut > 0
            && owner.serving.prefix(servedFurtherOut).contains { $0 === source }
    }

    /// Whether `source`, which leaves `mode`, is to be taken out when this loop next looks: soon, if it is the
    /// calling thread's and runs in the mode just now.
    func letsLeaveLater(_ source: Source, _ mode: Mode) -> Bool {
        guard isCurrent, !owner.isEmbedded else { return false }
        return state.withLock { state in
            guard let running = state.activations.last?.mode, state.modes[running].name == mode else {
                return false
            }
            state.modes[running].noteLeaving(source)
            return true
        }
    }

    /// Calls a descriptor source that was found ready.
    ///
    /// - Returns: Whether it was called: not if it is invalid by now, or on the stack already (rule SRC-26).
    @inline(__always)
    func serve(_ source: Source, events: Int32, in mode: Int, named name: Mode) -> Bool {
        guard !owner.serving.contains(source) else { return false }
        owner.serving.append(source)
        defer { owner.serving.removeLast() }
        if events & rondo_ev_error != 0 {
            let error = SystemError("epoll_ctl", code: events & ~rondo_ev_error)
            return source.isRefused(error, in: mode, of: self)
        }
        let era = owner.era
        let served = source.perform(
            ready: Source.Interest(events: events), in: mode, named: name, of: self)
        guard owner.era != era else { return served }
        // A nested run has left it out of the modes that it ran. Its descriptor may be closed by now, so they
        // watch it again in the way of every other change: when they next look, and after a check.
        for (mode, modeLoop) in owner.modeLoops.enumerated() where modeLoop?.hasPaused(source) ?? false {
            state.withLock { $0.modes[mode].noteChange(of: source) }
        }
        return served
    }

    /// Sees to it that the timerfd ends the sleep at `instant` at the latest, and that it is not one that has passed
    /// (and would end every sleep).
    ///
    /// An earlier moment that it is set to, for a timer that has gone, is left: the loop then looks once and goes on
    /// sleeping, while setting it is a system call, which a request with a timeout would cost in each sleep.
    ///
    /// - Returns: False: there is no timer that would end the sleep.
    @discardableResult
    func armTimer(noLaterThan instant: LoopInstant, now: LoopInstant) -> Bool {
        guard instant < owner.armed || owner.armed <= now else { return true }
        guard let wakeUp = owner.wakeUp, wakeUp.arm(instant) else { return false }
        owner.armed = instant
        return true
    }
}
