internal import CEv

/// What only the loop's thread touches. (For `@exclusivity(unchecked)` see `ModeLoop`.)
final class LoopOwner {
    static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { ThreadEnd.run($0) }
        precondition(status == 0, "Rondo: no thread-specific key is left for the run loops")
        return key
    }()

    let kernel: LoopKernel
    /// By the index of the mode; nil where the mode has never run.
    var modeLoops: [ModeLoop?] { kernel.modeLoops }
    var isEmbedded = false
    /// Inside a turn that a foreign loop makes.
    var isTurning = false
    /// The clock of this loop, if it is not the machine's.
    var timeSource: (any LoopTimeSource)?
    /// The time, as long as nothing has been called and the loop has not slept since it was read.
    @exclusivity(unchecked) var knownNow: LoopInstant?
    /// The last wait was no longer than `spinDuration`.
    var hasWaitedShortly = false
    /// Counts activations that began or ended.
    var era: UInt32 = 0
    /// Descriptor sources whose callback is on the stack, the innermost last.
    @exclusivity(unchecked) var serving: [RunLoop.Source] = []
    /// The innermost run.
    var run = RunOnStack()
    /// The mode that was run last, and its index.
    var lastRun: (mode: RunLoop.Mode, index: Int)?
    var isDrainingMainQueue = false
    var isEnding = false
    /// Empty: room for the blocks that are performed next.
    @exclusivity(unchecked) var spareBlocks = PerformedBlocks()
    @exclusivity(unchecked) var deferred = DeferredWorkList()
    /// See `RunLoop.attachment(_:orMake:)`.
    var attachments: [AnyObject] = []

    /// This moment for a pass, which reads the clock only if something was called or the loop has slept since it last
    /// did: between two of its steps no time worth a reading goes by.
    var now: LoopInstant {
        if let knownNow { return knownNow }
        let now = LoopClock.now
        // A clock that a test holds may be moved at any time.
        if timeSource == nil { knownNow = now }
        return now
    }

    init(_ attention: Attention) {
        kernel = LoopKernel(attention)
    }
}

/// What is known of a run while it is under way. Loop's thread only.
struct RunOnStack {
    /// How many of `LoopOwner.serving` were on the stack when it began.
    var servedFurtherOut = 0
    /// The run makes further passes after a callback, or another run follows at once.
    var mayDeferWork = false
}
