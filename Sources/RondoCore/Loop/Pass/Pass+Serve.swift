internal import CRondoEv

// (j): one kind of ready events is served.
extension Pass {
    /// - Returns: Whether a source was called, and whether the main queue was drained; nil: nothing was
    ///   ready.
    func serveReady(timersAreDue: Bool) -> (source: Bool, mainQueue: Bool)? {
        // The usual case: only descriptors are ready.
        if !timersAreDue, !modeLoop.mainQueue.isReady {
            guard !modeLoop.ready.isEmpty else { return nil }
            modeLoop.noteServed(.descriptors)
            return (serveDescriptor(), false)
        }
        var served = (source: false, mainQueue: false)
        for kind in kindsToServe(timersAreDue: timersAreDue) {
            switch kind {
            case .timers:
                fireDueTimers()
            case .mainQueue:
                drainMainQueue()
                served.mainQueue = true
            case .descriptors:
                served.source = serveDescriptor()
            }
        }
        return served
    }

    /// One kind in each pass, in rotation; in the last pass before the limit every kind that is ready (rules
    /// RL-31 and RL-52).
    private func kindsToServe(timersAreDue: Bool) -> EventKinds {
        let found = EventKinds(from: modeLoop.nextKind, all: limit.isReached(at: loop.now)) { kind in
            switch kind {
            case .timers: timersAreDue
            case .mainQueue: modeLoop.mainQueue.isReady
            case .descriptors: !modeLoop.ready.isEmpty
            }
        }
        if let last = found.last { modeLoop.noteServed(last) }
        return found
    }

    /// Fires all timers that are due now; timers that become due meanwhile wait for a later pass (rule
    /// TM-24).
    private func fireDueTimers() {
        let now = loop.now
        loop.state.withLock { [mode] in $0.modes[mode].timers.collectDue(at: now) }
        while let timer = loop.state.withLock({ [mode] in $0.takeDueTimer(in: mode) }) {
            timer.fire(in: mode, of: loop)
        }
    }

    /// - Parameter mayLookAgain: Whether the last pass before the limit asks the kernel if no source was
    ///   called: what an earlier look has found may be out of date, and no later pass would serve what is
    ///   ready now.
    /// - Returns: Whether a source was called.
    private func serveDescriptor(mayLookAgain: Bool = true) -> Bool {
        while let (source, events) = modeLoop.nextReady() {
            // `Unmanaged`: the watcher retains the source until something is called, and before that `serve`
            // adds the source to `LoopThreadState.serving`. With a reference bench-guard's
            // descriptor.event.together takes 4 % more instructions.
            let served = source._withUnsafeGuaranteedRef {
                // Safe: `WatcherUpdate.apply(_:)` gives a mode only sources to watch. With a checked cast
                // it takes 3 % more.
                serve(unsafeDowncast($0, to: RunLoop.Source.self), events: events)
            }
            if served { return true }
        }
        guard mayLookAgain, limit.isReached(at: loop.now) else { return false }
        modeLoop.pollWatched()
        return serveDescriptor(mayLookAgain: false)
    }

    /// Calls a descriptor source that was found ready.
    ///
    /// - Returns: False if the source was not called: it has become invalid, or is already on the stack (rule
    ///   SRC-26).
    private func serve(_ source: RunLoop.Source, events: Int32) -> Bool {
        let threadState = loop.threadState
        guard !threadState.serving.contains(source) else { return false }
        threadState.beginServing(source)
        defer { threadState.endServing() }
        if events & rondo_ev_error != 0 { return reportRefusal(to: source, code: events & ~rondo_ev_error) }
        let era = threadState.era
        let served = source.perform(
            ready: RunLoop.Source.Interest(events: events), in: mode, named: activation.name, of: loop)
        if threadState.era != era { loop.watchAgain(source) }
        return served
    }

    @inline(never)
    private func reportRefusal(to source: RunLoop.Source, code: Int32) -> Bool {
        source.handleRefusal(SystemError("epoll_ctl", code: code), in: mode, of: loop)
    }

    // MARK: - The main queue

    // The main run loop also drains the main dispatch queue, in its common modes, so that
    // `DispatchQueue.main`, `OperationQueue.main` and `@MainActor` work while it runs (rules RL-14, RL-58 and
    // RL-59).

    var mainQueueHasWork: Bool {
        loop.isMain && loop.state.withLock { [mode, loop] in loop.drainsMainQueue(in: $0.modes[mode]) }
            && MainQueue.hasWork
    }

    func drainMainQueue() {
        loop.threadState.isDrainingMainQueue = true
        Trace.callOut(loop, mode, .mainQueue) { MainQueue.drain() }
        loop.threadState.isDrainingMainQueue = false
        modeLoop.mainQueueWasDrained()
    }
}

extension RunLoop {
    /// Whether the calling thread's loop has been run again in the callback of a source.
    package static var servesInOuterRun: Bool {
        existingLoop.map { $0.threadState.run.servedInOuterRuns > 0 } ?? false
    }

    /// Whether the callback of `source` is on the stack, and the calling thread's loop has been run again
    /// inside it: the source cannot be served in that run (rule SRC-26).
    package static func isServedInOuterRun(_ source: Source) -> Bool {
        let threadState = currentLoop().threadState
        let servedInOuterRuns = threadState.run.servedInOuterRuns
        return servedInOuterRuns > 0
            && threadState.serving.prefix(servedInOuterRuns).contains { $0 === source }
    }

    /// Has the modes that a nested run has served, and in which it has paused `source`, watch it again. Its
    /// descriptor may be closed by now, so they do that as after every other change: at the next look, and
    /// after a check.
    @inline(never)
    fileprivate func watchAgain(_ source: Source) {
        for (mode, modeLoop) in threadState.modeLoops.enumerated() where modeLoop?.hasPaused(source) ?? false
        {
            state.withLock { $0.modes[mode].noteChange(of: source) }
        }
    }
}
