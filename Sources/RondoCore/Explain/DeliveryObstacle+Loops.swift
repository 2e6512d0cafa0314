extension RunLoop {
    /// The reason why this loop does not call a member of `mode` back.
    package func obstacle(inMode mode: Mode) -> DeliveryObstacle {
        let (reason, sentence) = standing(inMode: mode)
        return DeliveryObstacle(
            reason: reason, description: "scheduled in \(mode.shortName); \(sentence)")
    }

    /// The same as a reason and what the loop does: "its loop (thread worker) waits in default: nothing to
    /// deliver yet".
    func standing(inMode mode: Mode) -> (reason: DeliveryObstacle.Reason, sentence: String) {
        let (standing, since) = state.withLock { [attention, intake] state -> (LoopStanding, LoopInstant) in
            let emptyRun = state.history.lastEmptyRun
            let standing = LoopStanding(
                isAlive: state.isAlive, isEmbedded: attention.isEmbedded,
                isWaiting: attention.isWaiting, running: state.runningMode,
                lastMode: state.history.lastMode.map { state.modes[$0].name },
                emptyRun: emptyRun,
                isStillEmpty: emptyRun.flatMap { state.existingIndex(of: $0.mode) }.map {
                    state.isEmpty($0, intake)
                } ?? true,
                modes: state.indices(named: mode).map { state.modes[$0].name })
            return (standing, state.countedUntil)
        }
        let thread = threadName.map { "its loop (thread \($0))" } ?? "its loop"
        let time = String(format: "%.1f s", nowByItsClock.seconds(since: since))
        return standing.obstacle(to: mode, thread, time)
    }
}

extension RunHistory.EmptyRun {
    fileprivate var mode: RunLoop.Mode { RunLoop.Mode(modeName) }

    /// For example "was run in default, found it empty and returned at once". After earlier runs it may have
    /// been the last look of `run()`, which returns when its mode has become empty.
    var description: String {
        earlierRuns == 0
            ? "was run in \(mode.shortName), found it empty and returned at once"
            : "was last run in \(mode.shortName), found it empty and returned"
    }
}

/// The state of a loop when a member is asked why it is not called.
private struct LoopStanding {
    let isAlive: Bool
    let isEmbedded: Bool
    let isWaiting: Bool
    let running: RunLoop.Mode?
    /// The mode of the last run that has ended; nil before that.
    let lastMode: RunLoop.Mode?
    let emptyRun: RunHistory.EmptyRun?
    /// Whether the mode of that run is empty now, too.
    let isStillEmpty: Bool
    /// The modes that the member is in.
    let modes: [RunLoop.Mode]

    /// - Parameters:
    ///   - mode: The name under which the member is scheduled.
    ///   - thread: "its loop (thread worker)".
    ///   - time: The time for which the loop has been running, or not running: "0.3 s".
    func obstacle(
        to mode: RunLoop.Mode, _ thread: String, _ time: String
    ) -> (reason: DeliveryObstacle.Reason, sentence: String) {
        guard isAlive else { return (.threadEnded, "the thread of its loop has ended") }
        guard let running else {
            return (lastMode == nil ? .loopNeverRan : .loopNotRunning, "\(thread) \(rest(of: mode, time))")
        }
        guard modes.contains(running) else {
            return (
                .runsInAnotherMode(running), "\(thread) has been running in \(running.shortName) for \(time)"
            )
        }
        guard isWaiting else {
            return (.busy, "\(thread) runs in \(running.shortName), and is busy with a callback just now")
        }
        return (.nothingToDeliver, "\(thread) waits in \(running.shortName): nothing to deliver yet")
    }

    /// What a loop that does not run has done last, and what helps.
    private func rest(of mode: RunLoop.Mode, _ time: String) -> String {
        let advice = "run it, \(mode.adviceToRun)"
        if let emptyRun {
            let end = emptyRun.description
            // An embedded loop is run again by a foreign one.
            if isEmbedded { return end }
            guard modes.contains(emptyRun.mode) else { return "\(end): \(advice)" }
            guard isStillEmpty else { return "\(end): run it again, \(mode.adviceToRun)" }
            return lastMode == nil
                ? "\(end): add a source, a timer or a Port first"
                : "\(end): run it again, with a source, a timer or a Port in that mode"
        }
        guard let lastMode else { return "has never been run: \(advice)" }
        let end = "ran in \(lastMode.shortName), and ended \(time) ago"
        return isEmbedded ? end : "\(end): \(advice)"
    }
}

extension DeliveryObstacle {
    /// The obstacle of a member of several modes: that of the mode closest to delivering.
    package init(modes: [(loop: RunLoop, mode: RunLoop.Mode)]) {
        let found = modes.map { $0.loop.obstacle(inMode: $0.mode) }
        self =
            found.first { $0.reason == .nothingToDeliver } ?? found.first { $0.reason == .busy } ?? found.last
            ?? Self(reason: .notScheduled, description: "in no mode of any run loop: schedule it")
    }

    static let threadEnded = DeliveryObstacle(
        reason: .threadEnded, description: "the thread of its loop has ended: schedule it on another loop")

    /// That of a member whose callback runs its loop, which does not call it again meanwhile (rules SRC-23
    /// and SRC-26).
    static let callbackRunsLoop = DeliveryObstacle(
        reason: .busy,
        description: "its callback has not returned: it is not called again in a run nested in it")

    package static let invalid = DeliveryObstacle(
        reason: .invalid, description: "it was invalidated or has ended: nothing will come any more")
}
