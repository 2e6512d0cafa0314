internal import CRondoEv

/// The state of a run loop that only the loop's thread touches.
///
/// Other files change this state, since the work of the loop's thread is spread over many: an activation and
/// its passes, the sleep, the bridges to Foundation's loop. The comment of each variable tells what it is
/// for.
///
/// Figures here and elsewhere are instructions for an act of `make bench-guard`, with and without the thing
/// that the comment describes.
///
/// `@exclusivity(unchecked)`: only one thread has access, and no access lasts while something else is called.
/// With the check of `serving` the guard's descriptor.event takes 2,546 instructions instead of 2,210; with
/// that of `deferred` pass.other-mode takes 1,715 instead of 1,387, and with that of `knownNow` 1,435.
final class LoopOwner {
    static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { ThreadEnd.run($0) }
        precondition(status == 0, "Rondo: no thread-specific key is left for the run loops")
        return key
    }()

    let kernel: LoopKernel
    /// Indexed by mode; nil for a mode that has never run.
    var modeLoops: [ModeLoop?] { kernel.modeLoops }
    var isEmbedded = false
    /// The loop is inside `Embedding.turn()`.
    var isInTurn = false
    /// The loop's own clock; nil if it uses the machine's.
    var timeSource: (any LoopTimeSource)?
    /// The time as last read; nil if something was called since, or the loop has slept.
    @exclusivity(unchecked) var knownNow: LoopInstant?
    /// The last wait was no longer than `spinDuration`.
    var hasWaitedShortly = false
    /// The number of activations that have begun or ended.
    private(set) var era: UInt32 = 0
    /// Descriptor sources whose callback is on the stack, the innermost last.
    @exclusivity(unchecked) var serving: [RunLoop.Source] = []
    /// The innermost run.
    var run = RunOnStack()
    /// The mode that was run last.
    var lastRun: (name: RunLoop.Mode, index: Int, modeLoop: ModeLoop)?
    var isDrainingMainQueue = false
    /// The bridge to Foundation's run loop of the same thread; nil if that loop is not served.
    var bridge: (any FoundationBridge)?
    /// Foundation's run loop runs in place of this loop's sleep.
    var isInFoundation = false
    /// The main queue, or a source of Foundation's loop, was served while this loop slept, and no pass has
    /// counted that yet.
    var wasServedAsleep = false
    private(set) var isEnding = false
    /// An empty buffer whose memory the next performed blocks use. With a new buffer each time the guard's
    /// block.performed.alone takes 1,663 instructions instead of 1,395.
    var spareBlocks = PerformedBlocks()
    @exclusivity(unchecked) var deferred = DeferredWorkList()
    /// See `RunLoop.attachment(_:orMake:)`.
    private(set) var attachments: [AnyObject] = []
    /// Closures that the current passes are calling, for the start of a pass.
    var performing: [OrderedPerform] = []
    /// The number of passes so far.
    private(set) var passes: UInt = 0
    /// See `ThreadLoops`.
    var threadKey: UInt = 0

    /// The time for a pass. The clock is read only if something was called or the loop has slept since the
    /// last reading: between two steps of a pass the time hardly changes.
    var now: LoopInstant {
        if let knownNow { return knownNow }
        let now = LoopClock.now
        // A test may move its clock at any time.
        if timeSource == nil { knownNow = now }
        return now
    }

    init(_ attention: Attention) {
        kernel = LoopKernel(attention)
    }

    /// Called when an activation begins or ends; `current` is then the running mode, or nil if none runs.
    func beginEra(of current: ModeLoop?) {
        era &+= 1
        current?.begin(era: era)
    }

    func beginPass() { passes &+= 1 }

    func attach(_ object: AnyObject) {
        // Not appended in place: with that, each read of the array is checked for exclusive access, 200
        // instructions of http.request.
        attachments = attachments + [object]
    }

    func removeAttachments() { attachments = [] }

    /// Called when the thread ends.
    func beginEnding() { isEnding = true }
}

/// An activation while it is on the stack. Loop's thread only.
struct RunOnStack {
    /// The number of elements in `LoopOwner.serving` when the activation began.
    var servedInOuterRuns = 0
    /// The activation makes further passes after a callback, or another activation follows at once.
    var mayDeferWork = false
}
