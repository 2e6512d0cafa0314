extension RunLoop {
    /// Runs the mode called `name` pass by pass until something ends the activation; see `Pass`. Loop's
    /// thread only.
    ///
    /// - Parameters:
    ///   - limit: Evaluated after the last reading of the clock was forgotten: if this run is nested, its
    ///     outer pass may have read the clock long ago.
    ///   - isRepeated: Whether another activation follows at once, as in `repeatedly(_:)`.
    ///   - isStoppable: False if `stop()` is to stop the activation outside this one.
    /// - Returns: How the activation ended; nil if it could not start.
    @discardableResult
    func runActivation(
        _ name: Mode, limit: @autoclosure () -> RunLimit, returnAfterSourceHandled: Bool,
        isRepeated: Bool = false, isStoppable: Bool = true
    ) -> RunResult? {
        // Until here a main thread may have named its loop only as `RunLoop.main`.
        if isMain, pthread_getspecific(LoopThreadState.key) == nil { adoptThread() }
        threadState.forgetNow()
        let activation = Activation(
            loop: self, name: name, limit: limit(), returnAfterSourceHandled: returnAfterSourceHandled,
            isRepeated: isRepeated, isStoppable: isStoppable)
        guard let bridge = threadState.bridge else { return activation.run() }
        return activation.run(beside: bridge)
    }
}

/// One activation of a run loop: from the call of a run function until it returns. Loop's thread only.
struct Activation {
    let loop: RunLoop
    let name: RunLoop.Mode
    let limit: RunLimit
    let returnAfterSourceHandled: Bool
    /// Another activation follows at once.
    let isRepeated: Bool
    /// `stop()` applies to it.
    let isStoppable: Bool

    private var threadState: LoopThreadState { loop.threadState }

    /// - Returns: How the activation ended; nil if it could not start.
    consuming func run() -> RunLoop.RunResult? {
        // An outer run may not make its next pass for a long time, and this run may serve sources that the
        // deferred work signals.
        if !isRepeated { threadState.performAllDeferredWork(of: loop) }
        guard !threadState.isEnding, let (mode, modeLoop) = findMode(),
            let hasWork = begin(mode, modeLoop)
        else { return nil }
        let outer = threadState.beginRun(mayDeferWork: isRepeated || !returnAfterSourceHandled)
        let pass = Pass(activation: self, mode: mode, modeLoop: consume modeLoop)
        let result = pass.run(hasWork: hasWork)
        pass.loop.threadState.endRun(outer: outer)
        pass.activation.end()
        return result
    }

    /// Nearly always the mode that was run last, which is found without hashing its name and without the
    /// lock: without this and `LoopState.lastNamed` bench-guard's pass.other-mode takes 60 % more
    /// instructions.
    private func findMode() -> (index: Int, modeLoop: ModeLoop)? {
        if let last = threadState.lastRun, last.name == name { return (last.index, last.modeLoop) }
        guard name != .common else {
            loop.warnOfRunInCommonModes()
            return nil
        }
        let found = loop.state.withLock { [name] state in
            let index = state.existingIndex(of: name)
            if index == nil { state.noteEmptyRun(in: name) }
            return index
        }
        guard let index = found else { return nil }
        let modeLoop = threadState.kernel.modeLoop(index)
        threadState.noteRun(of: name, index, modeLoop)
        return (index, modeLoop)
    }

    /// - Returns: Whether blocks are queued or sources signalled; nil if the mode has nothing to serve.
    private func begin(_ mode: Int, _ modeLoop: ModeLoop) -> Bool? {
        let now = loop.now
        // The check and the start are one step under the lock: a thread that removes the last member wakes a
        // running loop, but a wake-up of a loop that does not run yet would be lost.
        let hasWork = loop.state.withLock { [loop, name] state -> Bool? in
            if state.isEmpty(mode, loop.intake) && !loop.drainsMainQueue(in: state.modes[mode]) {
                state.noteEmptyRun(in: name)
                return nil
            }
            if state.activations.isEmpty {
                loop.attention.beginRunning()
                state.history.begin()
            }
            state.countTime(until: now)
            state.activations.append(
                RunningActivation(
                    mode: mode, returnsAfterSource: returnAfterSourceHandled, isStoppable: isStoppable))
            // A block that is still in the intake counts: its request for attention may just have been
            // forgotten, and another thread that looks at the loop may move the block to its queue before the
            // first pass looks.
            return state.hasWork(for: mode) || !loop.intake.isEmpty
        }
        guard let hasWork else { return nil }
        threadState.beginEra(of: modeLoop)
        let serving = threadState.serving
        guard !serving.isEmpty else { return hasWork }
        loop.state.withLock { [outer = threadState.run.servedInOuterRuns] state in
            state.servedInOuterRuns += serving[outer...]
            // The first look pauses the sources whose callbacks are on the stack.
            for source in serving where state.modes[mode].holds(source) {
                state.modes[mode].noteChange(of: source)
            }
        }
        return hasWork
    }

    private func end() {
        let now = loop.now
        let (outer, mustLookAgain) = loop.state.withLock {
            [attention = loop.attention, threadState] state -> (Int?, Bool) in
            state.countTime(until: now)
            let ended = state.activations.removeLast()
            if !state.servedInOuterRuns.isEmpty {
                // The callbacks are on the stack, so this releases none of the sources.
                let count = threadState.run.servedInOuterRuns
                state.servedInOuterRuns.removeLast(state.servedInOuterRuns.count - count)
            }
            // A wake-up that the ended activation took may have been meant for the outer one.
            let isOutermost = state.activations.isEmpty
            if isOutermost {
                state.history.end(inMode: ended.mode)
                attention.endRunning()
            } else if ended.tookWakeUp {
                attention.askAgain()
            }
            return (state.activations.last?.mode, isOutermost && attention.isUnserved)
        }
        threadState.forgetNow()
        threadState.beginEra(of: outer.flatMap { threadState.modeLoops[$0] })
        if outer == nil, threadState.isEmbedded, !threadState.isInTurn {
            // A wake-up that this run took may have been meant for the embedded mode: make the foreign loop
            // call `turn()`.
            threadState.kernel.wakeUp?.wake()
            // A guest that a callback of this run has made may be suspended. (A run that began beside a guest
            // tells it in `run(beside:)`, also if it could not start.)
            threadState.bridge?.activationEnded()
        }
        // The loop may never be run again.
        if mustLookAgain { loop.warnUnlessRun() }
    }
}
