extension RunLoop {
    /// The reason why an activation ended; raw values are those of `CFRunLoopRunResult`.
    public enum RunResult: Int32, Sendable {
        /// The mode holds nothing to serve.
        case finished = 1
        /// `stop()` was called.
        case stopped = 2
        /// The time has passed.
        case timedOut = 3
        /// A source was served, and the caller asked to return after one.
        case handledSource = 4
    }

    /// Runs the default mode until it is empty; neither time nor `stop()` ends this (rule RL-35). The main
    /// loop's mode is never empty because it serves the main dispatch queue: on the main thread this does not
    /// return (rule RL-14).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func run() {
        guard isCurrent else { return }
        repeatedly {
            runActivation(.default, limit: .never, returnAfterSourceHandled: true, isRepeated: true) != nil
        }
    }

    /// Repeats runs that return after each source, with no other work of the caller between them.
    private func repeatedly(_ run: () -> Bool) {
        threadState.performAllDeferredWork(of: self)
        while run() {}
        threadState.performAllDeferredWork(of: self)
    }

    /// Runs the default mode until `limit`, or until it is empty. Serving a source does not end it (rule
    /// RL-36).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func run(until limit: Date) {
        guard isCurrent else { return }
        // Translated once, so that setting the wall clock meanwhile moves nothing.
        let instant = limit == .distantFuture ? .never : LoopClock.instant(of: limit)
        repeatedly {
            runActivation(
                .default, limit: RunLimit(instant: instant, from: now), returnAfterSourceHandled: true,
                isRepeated: true) != nil
                && instant > LoopClock.now
        }
    }

    /// Runs `mode` until one source has been served, `limit` has passed, or `stop()` was called.
    ///
    /// Timers fire without ending it (rule RL-38). A limit in the past makes one pass without sleeping.
    /// - Returns: False if the run could not start: the mode holds no source, timer or block, it is
    ///   `.common`, or this is not the calling thread's loop.
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    @discardableResult
    public func run(mode: Mode, before limit: Date) -> Bool {
        guard isCurrent else { return false }
        return runActivation(
            mode, limit: RunLimit(date: limit, from: now), returnAfterSourceHandled: true) != nil
    }

    /// Does the same as `run(mode:before:)`, without a result (rule RL-40).
    @available(*, noasync, message: "It blocks the thread. Use a RunLoopThread.")
    public func acceptInput(forMode mode: Mode, before limit: Date) {
        _ = run(mode: mode, before: limit)
    }

    /// Runs `mode` once, and returns the reason why it ended (rules RL-27 to RL-33).
    ///
    /// - Parameters:
    ///   - seconds: On the monotonic clock, from the call; 0 or less makes one pass without sleeping,
    ///     `.infinity` sets no limit. A callback that overruns it is not interrupted.
    ///   - returnAfterSourceHandled: Whether the run ends after the first source it serves.
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

    /// Does the same as `run(in:for:returnAfterSourceHandled:)`, for a call of the program that runs the loop
    /// without the program's knowledge: `stop()` does not end this run, but the run outside it.
    package func runUnstoppably(
        in mode: Mode, for seconds: TimeInterval, returnAfterSourceHandled: Bool
    ) -> RunResult {
        requireOwnThread()
        return runActivation(
            mode, limit: RunLimit(seconds: seconds, from: now),
            returnAfterSourceHandled: returnAfterSourceHandled, isStoppable: false)
            ?? .finished
    }

    /// Whether the innermost activation ends after one source. A source that serves several clients then
    /// stops after the first client that has called the program. False if the loop is not running.
    package var returnsAfterSource: Bool {
        state.withLock { $0.activations.last?.returnsAfterSource ?? false }
    }
}
