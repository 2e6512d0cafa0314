/// What a mode of the main loop knows of the main dispatch queue: how it learns that there is work, and whether there is some.
///
/// A value of the mode's `ModeLoop`. Loop's thread only. Its functions call no others: so the compiler sees that no access to
/// it overlaps with another, and leaves the checks out (170 instructions of the guard's pass.other-mode).
struct MainQueueWatch {
    /// How a mode learns that the queue has work.
    enum Way {
        /// Not at all: the mode does not drain the queue.
        case none
        /// Its descriptor is watched.
        case byDescriptor
        /// Each look asks the queue itself, and its descriptor is not watched: Foundation's loop watches it, which would wake
        /// this one too.
        case byAsking
    }

    /// To be changed with the watcher of the descriptor: see `ModeLoop.watchMainQueue(_:)`.
    var way = Way.none
    /// The queue has work; only ever true in the main loop's common modes.
    private(set) var isReady = false
    /// Foundation's loop has served a source of its own, or the main queue, while this one slept: that is to be counted as a
    /// drain, and the next one is.
    private(set) var owesDrain = false

    mutating func oweDrain() { owesDrain = true }

    /// A look at the kernel begins, which finds out whether the queue has work.
    mutating func beginLook() { isReady = owesDrain }

    /// A look at the kernel, or at the queue itself, has found out whether there is work.
    mutating func note(hasWork: Bool) { isReady = owesDrain || hasWork }

    mutating func drained() { (owesDrain, isReady) = (false, false) }

    /// What was found does not count any more: the mode does not watch the descriptor from here on.
    mutating func forget() { isReady = false }
}
