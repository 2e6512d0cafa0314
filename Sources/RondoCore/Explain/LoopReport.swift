/// Lists the members of loops and why each has not been called back: for a test that waits in vain.
package enum LoopReport {
    /// A source or a timer in a mode of a loop.
    package struct Member: Sendable {
        package let id: ObjectIdentifier
        /// The member, its mode, and why it has not called back, for example: "timer “poll”, due in 3.000 s".
        package let text: String
    }

    /// The sources and timers of `loop`, and a line for the blocks of each mode. Any thread.
    package static func members(of loop: RunLoop) -> [Member] {
        let now = loop.nowByItsClock
        // Members have locks of their own, so they are copied here and asked after the loop's lock is
        // released.
        let (modes, commonBlocks) = loop.state.withLock { [loop] state in
            state.collectBlocks(from: loop.intake)
            return (
                state.modes.enumerated().map { index, mode in
                    (
                        name: mode.name.shortName, sources: mode.sources,
                        timers: state.timerDates(inMode: index),
                        hasBlocks: !mode.blocks.isEmpty
                    )
                }, !state.commonBlocks.isEmpty
            )
        }
        var members: [Member] = []
        for mode in modes {
            members += mode.sources.map { source in
                let summary = source.kind.behaviour.summary(of: source)
                let obstacle = source.whyNotDelivering.description
                return Member(id: ObjectIdentifier(source), text: "\(mode.name): \(summary): \(obstacle)")
            }
            members += mode.timers.map { date in
                let summary = date.timer.summary(due: date.deadline, now: now)
                let obstacle = date.timer.whyNotDelivering.description
                return Member(id: ObjectIdentifier(date.timer), text: "\(mode.name): \(summary): \(obstacle)")
            }
            if mode.hasBlocks {
                members.append(Member(id: ObjectIdentifier(loop), text: "\(mode.name): blocks"))
            }
        }
        if commonBlocks { members.append(Member(id: ObjectIdentifier(loop), text: "common: blocks")) }
        return members
    }

    /// Every loop of the process that has members, and why each member has not been called back. Any thread.
    package static var ofAllLoops: String {
        var loops = ThreadLoops.all
        if !loops.contains(where: { $0 === RunLoop.main }) { loops.append(.main) }
        let lines = loops.flatMap { loop -> [String] in
            let members = members(of: loop)
            guard !members.isEmpty else { return [] }
            let state =
                loop.currentMode.map { "runs in \($0.shortName)\(loop.isWaiting ? ", waiting" : "")" }
                ?? "is not running"
            return ["The run loop of \(loop.nameOfItsThreadAndNumber) \(state):"]
                + members.map { "  \($0.text)" }
        }
        return lines.isEmpty ? "Nothing is scheduled on any run loop." : lines.joined(separator: "\n")
    }
}
