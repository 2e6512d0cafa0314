extension RunLoop {
    /// How an activation ended; raw values are those of `CFRunLoopRunResult`.
    public enum RunResult: Int32, Sendable {
        /// The mode holds nothing to serve.
        case finished = 1
        /// `stop()` was called.
        case stopped = 2
        /// The time has passed.
        case timedOut = 3
        /// A source was served, and the caller wanted to return then.
        case handledSource = 4
    }

    /// When an activation ends by time.
    enum RunLimit {
        /// One pass that does not sleep.
        case immediately
        case at(LoopInstant)
        case never

        init(seconds: TimeInterval, from now: @autoclosure () -> LoopInstant) {
            if !(seconds > 0) {
                self = .immediately
            } else {
                let instant = now().advanced(bySeconds: seconds)
                self = instant == .never ? .never : .at(instant)
            }
        }

        init(date: Date, from now: @autoclosure () -> LoopInstant) {
            self.init(instant: date == .distantFuture ? .never : LoopClock.instant(of: date), from: now())
        }

        init(instant: LoopInstant, from now: @autoclosure () -> LoopInstant) {
            self = instant == .never ? .never : instant > now() ? .at(instant) : .immediately
        }
    }

    /// Runs the default mode until nothing is left in it; neither time nor `stop()` ends it (rule RL-35).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func run() {
        guard isCurrent else { return }
        repeatedly {
            runActivation(.default, limit: .never, returnAfterSourceHandled: true, isRepeated: true) != nil
        }
    }

    /// Makes runs that return after each source, and that nothing of the caller's comes between.
    private func repeatedly(_ run: () -> Bool) {
        performAllDeferredWork()
        while run() {}
        performAllDeferredWork()
    }

    /// Runs the default mode until `limit`, or until nothing is left in it. Sources handled on the way do not
    /// end it (rule RL-36).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func run(until limit: Date) {
        guard isCurrent else { return }
        // Translated once: setting the wall clock meanwhile moves nothing.
        let instant = limit == .distantFuture ? .never : LoopClock.instant(of: limit)
        repeatedly {
            let limit = RunLimit(instant: instant, from: now)
            return runActivation(.default, limit: limit, returnAfterSourceHandled: true, isRepeated: true)
                != nil
                && instant > LoopClock.now
        }
    }

    // A machine without a descriptor, or without room in epoll sets, keeps no loop from running: see `ModeLoop+Bare`.

    /// Runs `mode` until one source has been served, `limit` has passed, or `stop()` was called.
    ///
    /// Timers fire without ending it (rule RL-38). A limit in the past makes one pass without sleeping.
    /// - Returns: False where it could not start: the mode holds no source, timer or block, it is `.common`,
    ///   or this is not the calling thread's loop.
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    @discardableResult
    public func run(mode: Mode, before limit: Date) -> Bool {
        guard isCurrent else { return false }
        return runActivation(
            mode, limit: RunLimit(date: limit, from: now), returnAfterSourceHandled: true) != nil
    }

    /// As `run(mode:before:)`, without a result (rule RL-40).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func acceptInput(forMode mode: Mode, before limit: Date) {
        _ = run(mode: mode, before: limit)
    }

    /// Runs `mode` once, and says why it ended (rules RL-27 to RL-33).
    ///
    /// - Parameters:
    ///   - seconds: On the monotonic clock, from the call; 0 or less makes one pass without sleeping,
    ///     `.infinity` sets no limit. A callback that overruns it is not interrupted.
    ///   - returnAfterSourceHandled: End after the first source served.
    /// - Note: On the loop's own thread only. The counterpart of `CFRunLoopRunInMode`.
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func run(
        in mode: Mode, for seconds: TimeInterval, returnAfterSourceHandled: Bool
    ) -> RunResult {
        requireOwnThread("run(in:for:returnAfterSourceHandled:)")
        return runActivation(
            mode, limit: RunLimit(seconds: seconds, from: now),
            returnAfterSourceHandled: returnAfterSourceHandled)
            ?? .finished
    }

    /// Whether the innermost activation ends after one source: what serves several things by one source
    /// serves them until it has called somebody then. False where the loop is not running.
    package var returnsAfterSource: Bool {
        state.withLock { $0.activations.last?.returnsAfterSource ?? false }
    }

    // MARK: - One activation

    /// - Parameter isRepeated: Whether another one follows at once, as `repeatedly(_:)` makes them.
    /// - Returns: How it ended; nil if it could not even start.
    @discardableResult
    func runActivation(
        _ mode: Mode, limit: RunLimit, returnAfterSourceHandled: Bool, isRepeated: Bool = false
    ) -> RunResult? {
        // A run further out may have to wait long for its next pass; and what is signalled this run may serve.
        if !isRepeated { performAllDeferredWork() }
        guard !owner.isEnding, let index = index(ofModeToRun: mode) else {
            owner.knownNow = nil
            return nil
        }
        let modeLoop = modeLoop(index)
        guard let hasWork = beginActivation(index, modeLoop, returnsAfterSource: returnAfterSourceHandled)
        else {
            // The limit has read it, and nobody knows when the next run comes.
            owner.knownNow = nil
            return nil
        }
        let pass = Pass(
            loop: self, mode: index, name: mode, modeLoop: modeLoop, limit: limit,
            returnAfterSourceHandled: returnAfterSourceHandled, isRepeated: isRepeated)
        let outer = owner.run
        owner.run = RunOnStack(
            servedFurtherOut: owner.serving.count, mayDeferWork: isRepeated || !returnAfterSourceHandled)
        let result = pass.run(hasWork: hasWork)
        owner.run = outer
        endActivation(index, modeLoop)
        return result
    }

    /// Nearly always the mode that was run last, which is found without hashing its name.
    private func index(ofModeToRun mode: Mode) -> Int? {
        if let last = owner.lastRun, last.mode == mode { return last.index }
        guard mode != .common, let index = state.withLock({ $0.existingIndex(of: mode) }) else { return nil }
        owner.lastRun = (mode, index)
        return index
    }

    /// - Returns: Whether blocks are queued or sources signalled; nil where there is nothing to serve in the mode.
    private func beginActivation(_ mode: Int, _ modeLoop: ModeLoop, returnsAfterSource: Bool) -> Bool? {
        let now = self.now
        // The question and the beginning are one step: whoever takes the last item away wakes a loop that
        // runs, and is not heard by one that does not run yet.
        let hasWork = state.withLock { state -> Bool? in
            if state.isEmpty(mode, intake) && !drainsMainQueue(in: state.modes[mode]) { return nil }
            if state.activations.isEmpty {
                attention.beginRunning()
                state.runs += 1
            }
            state.countTime(until: now)
            state.activations.append(
                LoopState.Activation(mode: mode, returnsAfterSource: returnsAfterSource))
            return state.hasWork(for: mode)
        }
        guard let hasWork else { return nil }
        owner.era &+= 1
        modeLoop.era = owner.era
        // The first look pauses them.
        for source in owner.serving { state.withLock { $0.modes[mode].noteChange(of: source) } }
        return hasWork
    }

    private func endActivation(_ mode: Int, _ modeLoop: ModeLoop) {
        let now = self.now
        let (outer, mustLookAgain) = state.withLock { state -> (Int?, Bool) in
            state.countTime(until: now)
            let ended = state.activations.removeLast()
            // A wake-up that the ended activation took may have been meant for the one further out.
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
            // What this took may have been meant for the embedded mode: the foreign loop makes a turn.
            owner.wakeUp?.wake()
        }
        // It may have been run for the last time.
        if mustLookAgain { warnUnlessRun() }
    }
}
