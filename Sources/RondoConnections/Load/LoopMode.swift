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
        // With one mode it is enough to compare loops: only that loop's thread puts the channel into the mode, and it
        // has been inside this callback ever since.
        if count == 1 { return self[0].loop.isCurrent }
        return contains { scheduled in
            guard scheduled.loop.isCurrent, let mode = scheduled.loop.currentMode else { return false }
            return scheduled.mode == mode
                || scheduled.mode == .common && scheduled.loop.modes(named: .common).contains(mode)
        }
    }
}
