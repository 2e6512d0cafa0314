/// A main loop mode's knowledge of the main dispatch queue: how the mode learns that the queue has work, and
/// whether it has some.
///
/// A value of the mode's `ModeLoop`. Loop's thread only. Its functions call no others, so that the compiler
/// can see that no two accesses overlap, and leaves the checks out: a single one makes
/// bench-guard's pass.other-mode 7 % dearer.
struct MainQueueWatch {
    /// How a mode learns that the queue has work.
    enum Method {
        /// Not at all: the mode does not drain the queue.
        case none
        /// The queue's descriptor is watched.
        case byDescriptor
        /// Each look asks the queue itself. Its descriptor is not watched, because Foundation's loop drains
        /// the queue and watching would wake this loop too.
        case byAsking
    }

    /// Change this together with the watcher of the descriptor: see `ModeLoop.watchMainQueue(by:)`.
    var method = Method.none
    /// The queue has work; only ever true in the main loop's common modes.
    private(set) var isReady = false
    /// Foundation's loop has served one of its own sources, or the main queue, while this loop slept, and no
    /// pass has counted that yet: the next drain counts for it.
    private(set) var owesDrain = false

    mutating func oweDrain() { owesDrain = true }

    /// Called when a look at the kernel begins, which finds out whether the queue has work.
    mutating func beginLook() { isReady = owesDrain }

    /// Called when a look at the kernel, or at the queue itself, has found out whether there is work.
    mutating func note(hasWork: Bool) { isReady = owesDrain || hasWork }

    mutating func drained() { (owesDrain, isReady) = (false, false) }

    /// Forgets earlier findings: the mode no longer watches the descriptor.
    mutating func forget() { isReady = false }
}
