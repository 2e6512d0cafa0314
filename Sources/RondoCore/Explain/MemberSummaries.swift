// The descriptions of a loop and its members for `RunLoop.debugDescription`.

extension LoopDescription {
    /// Describes the present members of `loop`. Any thread.
    init(of loop: RunLoop) {
        let now = loop.nowByItsClock
        // Labels and dates have locks of their own, so the members are copied here and asked after the loop's
        // lock is released.
        let (running, bridge, mayHoldMainQueue, modes) = loop.state.withLock { [loop] state in
            state.collectBlocks(from: loop.intake)
            return (
                state.activations.map { state.modes[$0.mode].name.shortName },
                state.bridge,
                loop.leavesMainQueueWaiting(state),
                state.modes.enumerated().map { index, mode in
                    (
                        name: mode.name.shortName, isCommon: mode.isCommon, sources: mode.sources,
                        timers: state.timerDates(inMode: index), observers: mode.observers,
                        hasBlocks: !mode.blocks.isEmpty,
                        notifications: state.notifications?.summary(
                            in: mode.name.rawValue, isCommon: mode.isCommon)
                    )
                }
            )
        }
        self.init(
            threadName: loop.threadName, runningModes: running, isWaiting: loop.isWaiting,
            modes: modes.map { mode in
                let sources = mode.sources.map { $0.kind.behaviour.summary(of: $0) }
                let timers = mode.timers.map {
                    $0.timer.summary(due: $0.deadline, now: now)
                }
                return LoopDescription.Mode(
                    name: mode.name, isCommon: mode.isCommon,
                    members: sources + timers + mode.observers.map(\.summary), hasBlocks: mode.hasBlocks,
                    notifications: mode.notifications)
            }, bridge: bridge, mainQueueWaits: mayHoldMainQueue && MainQueue.waitsForMainThread)
    }
}

extension Timer {
    func summary(due deadline: LoopInstant, now: LoopInstant) -> String {
        let seconds = deadline.seconds(since: now)
        let due =
            if deadline == .never {
                "parked"
            } else if seconds < 0 {
                String(format: "overdue by %.3f s", -seconds)
            } else {
                String(format: "due in %.3f s", seconds)
            }
        let repeats = timeInterval > 0 ? ", every \(timeInterval.formatted()) s" : ""
        return "timer\(label.map { " “\($0)”" } ?? ""), \(due)\(repeats)"
    }
}

extension RunLoop.Observer {
    fileprivate var summary: String {
        "observer\(label.map { " “\($0)”" } ?? ""), order \(order), activities \(activities)"
    }
}
