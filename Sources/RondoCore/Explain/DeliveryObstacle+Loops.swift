extension RunLoop {
    /// The reason why this loop does not call a member of `mode` back.
    package func obstacle(inMode mode: Mode) -> DeliveryObstacle { .found(inMode: mode, of: self) }
}

extension DeliveryObstacle {
    fileprivate static func found(inMode mode: RunLoop.Mode, of loop: RunLoop) -> DeliveryObstacle {
        let (isAlive, hasRun, running, since, isInCallback, modes) = loop.state.withLock { [loop] state in
            (
                state.isAlive, state.runs > 0, state.runningMode, state.countedUntil,
                !loop.attention.isWaiting,
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
