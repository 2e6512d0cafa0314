/// What a run loop says of itself in `debugDescription`: its modes, and what is in them.
struct LoopDescription {
    let loop: RunLoop

    var text: String {
        let now = LoopClock.now
        // Labels and dates have locks of their own: what is in the modes is copied first.
        let (running, isWaiting, modes) = loop.state.withLock { [loop] state in
            state.collectBlocks(from: loop.intake)
            return (
                state.activations.map { state.modes[$0.mode].name.shortName }, loop.attention.isWaiting,
                state.modes.enumerated().map { index, mode in
                    (
                        name: mode.name.shortName, isCommon: mode.isCommon, sources: mode.sources,
                        timers: state.timerDates(inMode: index), observers: mode.observers,
                        hasBlocks: !mode.blocks.isEmpty
                    )
                }
            )
        }
        var lines = ["RunLoop of thread \(loop.threadName ?? "(without a name)")"]
        if running.isEmpty {
            lines[0] += ", not running"
        } else {
            lines[0] += ", running in \(running.joined(separator: " > "))\(isWaiting ? ", waiting" : "")"
        }
        for mode in modes {
            lines.append("  \(mode.name)\(mode.isCommon ? " (common)" : "")")
            for source in mode.sources { lines.append("    \(source.kind.behaviour.summary(of: source))") }
            for date in mode.timers {
                let timer = date.timer
                let due = String(format: "%.3f s", date.deadline.seconds(since: now))
                let repeats = timer.timeInterval > 0 ? ", every \(timer.timeInterval.formatted()) s" : ""
                lines.append("    timer\(timer.label.map { " “\($0)”" } ?? ""), due in \(due)\(repeats)")
            }
            for observer in mode.observers {
                let label = observer.label.map { " “\($0)”" } ?? ""
                lines.append(
                    "    observer\(label), order \(observer.order), activities \(observer.activities.names)")
            }
            if mode.hasBlocks { lines.append("    blocks") }
        }
        return lines.joined(separator: "\n")
    }
}

extension RunLoop.Activity {
    fileprivate var names: String {
        let names: [(RunLoop.Activity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        return names.filter { contains($0.0) }.map(\.1).joined(separator: " ")
    }
}
