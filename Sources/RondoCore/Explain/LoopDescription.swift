/// The text of `RunLoop.debugDescription`: a loop, its modes, and a line for each member.
struct LoopDescription {
    /// A mode and its members.
    struct Mode {
        let name: String
        let isCommon: Bool
        /// A line for each source, timer and observer.
        let members: [String]
        let hasBlocks: Bool
        /// The number of waiting notifications, as text; nil if there are none.
        var notifications: String?
    }

    let threadName: String?
    /// The names of the modes that run, the outermost first.
    let runningModes: [String]
    let isWaiting: Bool
    let modes: [Mode]
    /// The bridge to Foundation's loop of the thread; nil if there is none.
    var bridge: String?
    /// Whether the main queue has work that the loop does not do, since it runs in no common mode.
    var mainQueueWaits = false

    var text: String {
        var lines = ["RunLoop of thread \(threadName ?? "(without a name)")"]
        if runningModes.isEmpty {
            lines[0] += ", not running"
        } else {
            lines[0] += ", running in \(runningModes.joined(separator: " > "))\(isWaiting ? ", waiting" : "")"
        }
        if let bridge { lines.append("  \(bridge)") }
        if mainQueueWaits { lines.append("  the main queue waits for a common mode to run") }
        for mode in modes {
            lines.append("  \(mode.name)\(mode.isCommon ? " (common)" : "")")
            lines += mode.members.map { "    \($0)" }
            if mode.hasBlocks { lines.append("    blocks") }
            if let notifications = mode.notifications { lines.append("    \(notifications)") }
        }
        return lines.joined(separator: "\n")
    }
}
