/// What a pass knows when it begins, and what its steps tell the later ones.
struct PassFindings {
    // Known at the end of the previous pass:

    /// Blocks are queued or sources signalled: there is work for (c) or (d).
    var hasWork: Bool
    /// `nearestTimer` is known: ready descriptors waited to be served, and nothing has been called since.
    var knowsTimers = false
    /// `.never` if there is no timer.
    var nearestTimer = LoopInstant.never
    /// Before the first pass true: that one does not look at the queue in (f).
    var drainedMainQueue = true

    // Of this pass:

    /// A source was served, or the main queue.
    private(set) var handled = false
    /// A closure for the start of the pass was called. The pass must not sleep: the closures may have been the mode's
    /// only members.
    private(set) var hasPerformed = false
    /// The program was or may have been called: a block may be queued.
    private(set) var mayHaveCalled = false
    /// The pass calls the observers of a sleep.
    var maySleep = false

    init(hasWork: Bool) {
        self.hasWork = hasWork
    }

    mutating func beginPass() {
        (handled, hasPerformed, mayHaveCalled, maySleep) = (false, false, false, false)
    }

    mutating func noteStartClosures() { (hasPerformed, hasWork) = (true, true) }

    mutating func noteCall() { (mayHaveCalled, knowsTimers) = (true, false) }

    mutating func noteHandled() { handled = true }
}
