package import RondoCore

/// A run loop and one of its modes, or the name that stands for its common modes.
package struct LoopMode: Hashable, Sendable {
    package let loop: RunLoop
    package let mode: RunLoop.Mode

    package init(loop: RunLoop, mode: RunLoop.Mode) {
        self.loop = loop
        self.mode = mode
    }

    package static func == (left: LoopMode, right: LoopMode) -> Bool {
        left.loop === right.loop && left.mode == right.mode
    }
}

extension [LoopMode] {
    /// Whether the calling thread is in a pass of one of these modes.
    var servesCallingThread: Bool {
        // With one mode, only its loop's thread registers the channel, which it cannot have done since the
        // callback began. So the mode in which the loop runs is the right one.
        if count == 1 { return self[0].loop.isCurrent }
        return contains { scheduled in
            guard scheduled.loop.isCurrent, let mode = scheduled.loop.currentMode else { return false }
            return scheduled.mode == mode
                || scheduled.mode == .common && scheduled.loop.modes(named: .common).contains(mode)
        }
    }
}
