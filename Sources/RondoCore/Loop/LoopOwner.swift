internal import CRondoEv

/// The state of a run loop that only the loop's thread touches.
///
/// Other files change it, since the work of that thread is in many: an activation and its passes, the sleep, the bridges to
/// Foundation's loop. What each variable is for says which of them does.
///
/// Figures here and elsewhere are instructions for an act of `make bench-guard`, with what a comment names
/// and without.
///
/// `@exclusivity(unchecked)`: one thread has access, and no access lasts while something else is called. With
/// the check of `serving` the guard's descriptor.event takes 2,546 instructions instead of 2,210; with that
/// of `deferred` pass.other-mode takes 1,715 instead of 1,387, and with that of `knownNow` 1,435.
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
    /// The loop is inside `Embedding.turn()`.
    var isTurning = false
    /// The clock of this loop, if it is not the machine's.
    var timeSource: (any LoopTimeSource)?
    /// The time when it was last read; nil once something was called or the loop has slept since.
    @exclusivity(unchecked) var knownNow: LoopInstant?
    /// The last wait was no longer than `spinDuration`.
    var hasWaitedShortly = false
    /// Counts activations that began or ended.
    private(set) var era: UInt32 = 0
    /// Descriptor sources whose callback is on the stack, the innermost last.
    @exclusivity(unchecked) var serving: [RunLoop.Source] = []
    /// The innermost run.
    var run = RunOnStack()
    /// The mode that was run last.
    var lastRun: (name: RunLoop.Mode, index: Int, modeLoop: ModeLoop)?
    var isDrainingMainQueue = false
    /// How Foundation's run loop of the same thread is served too, if it is; see `FoundationBridge`.
    var bridge: (any FoundationBridge)?
    /// Foundation's run loop runs in place of this loop's sleep.
    var isInFoundation = false
    /// The main queue, or a source of Foundation's loop, was served while this loop slept, and no pass has counted it.
    var wasServedAsleep = false
    private(set) var isEnding = false
    /// An empty buffer, whose memory the next blocks that are performed use. With a new one each time the guard's
    /// block.performed.alone takes 1,663 instructions instead of 1,395.
    var spareBlocks = PerformedBlocks()
    @exclusivity(unchecked) var deferred = DeferredWorkList()
    /// See `RunLoop.attachment(_:orMake:)`.
    private(set) var attachments: [AnyObject] = []
    /// Closures for the start of a pass whose turn has come.
    var performing: [OrderedPerform] = []
    /// Counts passes.
    private(set) var passes: UInt = 0
    /// See `ThreadLoops`.
    var threadKey: UInt = 0

    /// The time for a pass. The clock is read only if something was called or the loop has slept since it was
    /// last read: between two steps of a pass the time hardly changes.
    var now: LoopInstant {
        if let knownNow { return knownNow }
        let now = LoopClock.now
        // A clock that a test controls may be moved at any time.
        if timeSource == nil { knownNow = now }
        return now
    }

    init(_ attention: Attention) {
        kernel = LoopKernel(attention)
    }

    /// An activation begins or ends, after which `current` is the mode that runs; nil: none does.
    func beginEra(of current: ModeLoop?) {
        era &+= 1
        current?.begin(era: era)
    }

    func beginPass() { passes &+= 1 }

    func attach(_ object: AnyObject) {
        // Not appended in place: then each look at them would be checked against it, 200 instructions of http.request.
        attachments = attachments + [object]
    }

    func removeAttachments() { attachments = [] }

    /// The thread ends, and the loop with it.
    func beginEnding() { isEnding = true }
}

/// An activation while it is on the stack. Loop's thread only.
struct RunOnStack {
    /// How many of `LoopOwner.serving` were on the stack when it began.
    var servedFurtherOut = 0
    /// The activation makes further passes after a callback, or another one follows at once.
    var mayDeferWork = false
}
