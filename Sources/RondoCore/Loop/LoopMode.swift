/// A run loop and one of its modes, or the name that stands for its common modes.
package struct LoopMode: Hashable, Sendable {
    package let loop: RunLoop
    package let mode: RunLoop.Mode

    package init(loop: RunLoop, mode: RunLoop.Mode) {
        self.loop = loop
        self.mode = mode
    }

    // By identity: a loop is an NSObject, whose own equality is a dynamic call with the same result.
    package static func == (left: LoopMode, right: LoopMode) -> Bool {
        left.loop === right.loop && left.mode == right.mode
    }
}
