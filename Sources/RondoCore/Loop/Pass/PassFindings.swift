/// The facts that the steps of a pass hand to each other.
///
/// `Pass` sets the internal variables from what the loop, the mode and the kernel report. The methods record
/// what the pass did.
struct PassFindings {
    // Known at the end of the previous pass:

    /// Blocks are queued or sources signalled: there is work for (c) or (d).
    var hasWork: Bool
    /// `nearestTimer` is known: ready descriptors waited to be served, and nothing has been called since.
    var knowsTimers = false
    /// `.never` if there is no timer.
    var nearestTimer = LoopInstant.never
    var mainQueueTurn = MainQueueTurn.first

    // Of this pass:

    /// A source was served, or the main queue.
    private(set) var handled = false
    /// A closure for the start of the pass was called. The pass must not sleep: the closures may have been
    /// the mode's only members.
    private(set) var hasPerformed = false
    /// The program was or may have been called: a block may be queued.
    private(set) var mayHaveCalled = false
    /// The pass calls the observers of a sleep.
    var maySleep = false

    /// The position of the main queue in the turns that the kinds of event take.
    enum MainQueueTurn {
        /// (f) looks at the queue.
        case due
        /// The previous pass has drained the queue, so (f) does not look at it.
        case drained
        /// The activation begins. (f) does not look at the queue then; and while descriptors that an earlier
        /// activation has found ready wait, the kernel is not asked about it either. So (h) asks the queue
        /// itself.
        case first
    }

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

/// The conditions that decide at the end of a pass whether the activation ends.
struct ExitFacts: OptionSet {
    let rawValue: UInt8

    static let hasBlocks = ExitFacts(rawValue: 1)
    static let isStopped = ExitFacts(rawValue: 2)
    static let isEmpty = ExitFacts(rawValue: 4)
}
