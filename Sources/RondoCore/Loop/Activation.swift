// One activation of a run loop: from the call of a run function until it returns. Loop's thread only.
extension RunLoop {
    /// Runs `name` pass by pass until something ends the activation; see `Pass`.
    ///
    /// - Parameter isRepeated: Whether another one follows at once, as `repeatedly(_:)` makes them.
    /// - Returns: How it ended; nil if it could not even start.
    @discardableResult
    func runActivation(
        _ name: Mode, limit: RunLimit, returnAfterSourceHandled: Bool, isRepeated: Bool = false
    ) -> RunResult? {
        if let bridge = owner.bridge {
            return runBridged(bridge) {
                runUnbridged(
                    name, limit: limit, returnAfterSourceHandled: returnAfterSourceHandled,
                    isRepeated: isRepeated)
            }
        }
        return runUnbridged(
            name, limit: limit, returnAfterSourceHandled: returnAfterSourceHandled, isRepeated: isRepeated)
    }

    private func runUnbridged(
        _ name: Mode, limit: RunLimit, returnAfterSourceHandled: Bool, isRepeated: Bool
    ) -> RunResult? {
        // An outer run may not make its next pass for long, and this run may serve sources that the work
        // signals.
        if !isRepeated { performAllDeferredWork() }
        guard !owner.isEnding, let mode = index(ofModeToRun: name) else {
            owner.knownNow = nil
            return nil
        }
        let modeLoop = owner.kernel.modeLoop(mode)
        guard let hasWork = begin(mode, modeLoop, returnsAfterSource: returnAfterSourceHandled) else {
            // The limit has read the clock, and when the next run comes is not known.
            owner.knownNow = nil
            return nil
        }
        let pass = Pass(
            loop: self, mode: mode, name: name, modeLoop: modeLoop, limit: limit,
            returnAfterSourceHandled: returnAfterSourceHandled, isRepeated: isRepeated)
        let outer = owner.run
        owner.run = RunOnStack(
            servedFurtherOut: owner.serving.count, mayDeferWork: isRepeated || !returnAfterSourceHandled)
        let result = pass.run(hasWork: hasWork)
        owner.run = outer
        end(mode, modeLoop)
        return result
    }

    /// Nearly always the mode that was run last, which is found without hashing its name.
    private func index(ofModeToRun name: Mode) -> Int? {
        if let last = owner.lastRun, last.mode == name { return last.index }
        guard name != .common, let index = state.withLock({ $0.existingIndex(of: name) }) else {
            return nil
        }
        owner.lastRun = (name, index)
        return index
    }

    /// - Returns: Whether blocks are queued or sources signalled; nil where there is nothing to serve in the
    ///   mode.
    private func begin(_ mode: Int, _ modeLoop: ModeLoop, returnsAfterSource: Bool) -> Bool? {
        let now = now
        // The question and the beginning are one step: a thread that takes the last item away wakes a loop
        // that runs, and is not heard by one that does not run yet.
        let hasWork = state.withLock { [self] state -> Bool? in
            if state.isEmpty(mode, intake) && !drainsMainQueue(in: state.modes[mode]) { return nil }
            if state.activations.isEmpty {
                attention.beginRunning()
                state.runs += 1
            }
            state.countTime(until: now)
            state.activations.append(
                LoopState.RunningActivation(mode: mode, returnsAfterSource: returnsAfterSource))
            return state.hasWork(for: mode)
        }
        guard let hasWork else { return nil }
        owner.era &+= 1
        modeLoop.era = owner.era
        // The first look pauses them.
        for source in owner.serving { state.withLock { $0.modes[mode].noteChange(of: source) } }
        return hasWork
    }

    private func end(_ mode: Int, _ modeLoop: ModeLoop) {
        let now = now
        let (outer, mustLookAgain) = state.withLock { [attention] state -> (Int?, Bool) in
            state.countTime(until: now)
            let ended = state.activations.removeLast()
            // The activation further out may have been meant by a wake-up that the ended one took.
            let isOutermost = state.activations.isEmpty
            if isOutermost {
                attention.endRunning()
            } else if ended.tookWakeUp {
                attention.askAgain()
            }
            return (state.activations.last?.mode, isOutermost && attention.isUnserved)
        }
        owner.knownNow = nil
        owner.era &+= 1
        if let outer {
            owner.modeLoops[outer]?.era = owner.era
        } else if owner.isEmbedded && !owner.isTurning {
            // The embedded mode may have been meant by a wake-up that this run took: the foreign loop makes a
            // turn.
            owner.kernel.wakeUp?.wake()
        }
        // This run may have been the last one.
        if mustLookAgain { warnUnlessRun() }
    }
}
