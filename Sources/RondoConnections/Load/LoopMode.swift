internal import RondoCore

/// A run loop and one of its modes, or the name that stands for its common modes.
struct LoopMode: Hashable {
    let loop: RunLoop
    let mode: RunLoop.Mode

    static func == (left: LoopMode, right: LoopMode) -> Bool {
        left.loop === right.loop && left.mode == right.mode
    }
}
