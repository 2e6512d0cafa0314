extension RunLoop {
    /// The reason why this loop does not call a member of `mode` back.
    package func obstacle(inMode mode: Mode) -> DeliveryObstacle { .found(inMode: mode, of: self) }
}

extension RunHistory.EmptyRun {
    fileprivate var mode: RunLoop.Mode { RunLoop.Mode(modeName) }

    /// For example "was run in default, found it empty and returned at once". After earlier runs it may have been the last
    /// look of `run()`, which returns when its mode has become empty.
    var description: String {
        earlierRuns == 0
            ? "was run in \(mode.shortName), found it empty and returned at once"
            : "was last run in \(mode.shortName), found it empty and returned"
    }
}

extension DeliveryObstacle {
    fileprivate static func found(inMode mode: RunLoop.Mode, of loop: RunLoop) -> DeliveryObstacle {
        let (isAlive, hasRun, emptyRun, running, since, isInCallback, modes) = loop.state.withLock {
            [loop] state in
            (
                state.isAlive, state.history.count > 0, state.history.lastEmptyRun, state.runningMode,
                state.countedUntil, !loop.attention.isWaiting,
                state.indices(named: mode).map { state.modes[$0].name }
            )
        }
        let scheduled = "scheduled in \(mode.shortName)"
        let thread = loop.threadName.map { "its loop (thread \($0))" } ?? "its loop"
        let seconds = { (instant: LoopInstant) in
            String(format: "%.1f s", loop.nowByItsClock.seconds(since: instant))
        }
        guard isAlive else {
            return DeliveryObstacle(
                reason: .threadEnded, description: "\(scheduled); the thread of its loop has ended")
        }
        if running == nil, let emptyRun {
            let advice =
                if !modes.contains(emptyRun.mode) {
                    "run it, \(mode.adviceToRun)"
                } else if hasRun {
                    "run it again, with a source, a timer or a Port in that mode"
                } else {
                    "add a source, a timer or a Port first"
                }
            return DeliveryObstacle(
                reason: hasRun ? .loopNotRunning : .loopNeverRan,
                description: "\(scheduled); \(thread) \(emptyRun.description): \(advice)")
        }
        guard hasRun else {
            return DeliveryObstacle(
                reason: .loopNeverRan,
                description: "\(scheduled); \(thread) has never been run: run it, \(mode.adviceToRun)")
        }
        guard let running else {
            return DeliveryObstacle(
                reason: .loopNotRunning,
                description: "\(scheduled); \(thread) has not been running for \(seconds(since))")
        }
        guard modes.contains(running) else {
            return DeliveryObstacle(
                reason: .runsInAnotherMode(running),
                description:
                    "\(scheduled); \(thread) has been running in \(running.shortName) for \(seconds(since))")
        }
        if isInCallback {
            return DeliveryObstacle(
                reason: .busy,
                description: "\(scheduled); \(thread) runs in it, and is busy with a callback just now")
        }
        return DeliveryObstacle(
            reason: .nothingToDeliver,
            description: "\(scheduled); \(thread) waits in \(running.shortName): nothing to deliver yet")
    }

    /// The obstacle of a member of several modes: that of the mode closest to delivering.
    package init(modes: [(loop: RunLoop, mode: RunLoop.Mode)]) {
        let found = modes.map { $0.loop.obstacle(inMode: $0.mode) }
        self =
            found.first { $0.reason == .nothingToDeliver } ?? found.first { $0.reason == .busy } ?? found.last
            ?? Self(reason: .notScheduled, description: "in no mode of any run loop: schedule it")
    }

    static let threadEnded = DeliveryObstacle(
        reason: .threadEnded, description: "the thread of its loop has ended: schedule it on another loop")

    package static let invalid = DeliveryObstacle(
        reason: .invalid, description: "it was invalidated or has ended: nothing will come any more")
}
