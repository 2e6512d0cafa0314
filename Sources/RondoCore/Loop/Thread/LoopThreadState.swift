internal import CRondoEv

/// The state of a run loop that only the loop's thread touches.
///
/// The work of that thread is spread over many files: an activation and its passes, the sleep, the bridges to
/// Foundation's loop. They change this state by the methods below. Each variable that is not private names
/// the file that sets it, or says why several do.
///
/// `@exclusivity(unchecked)`: only one thread has access, and no access lasts while something else is called.
/// With the check of `serving` bench-guard's descriptor.event takes 16 % more instructions, and with that of
/// `deferred` pass.other-mode 21 %.
final class LoopThreadState {
    static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { ThreadEnd.run($0) }
        precondition(status == 0, "Rondo: no thread-specific key is left for the run loops")
        return key
    }()

    private let attention: Attention
    let kernel: LoopKernel
    /// Indexed by mode; nil for a mode that has never run.
    var modeLoops: [ModeLoop?] { kernel.modeLoops }
    private(set) var isEmbedded = false
    /// The loop is inside `Embedding.turn()`.
    private(set) var isInTurn = false
    /// Called when the loop has ended, also if a callback has ended the thread. Set by `RunLoopThread`, and
    /// taken by `ThreadEnd`, which calls it last.
    var whenEnded: (@Sendable () -> Void)?
    /// The loop's own clock; nil if it uses the machine's.
    private(set) var timeSource: (any LoopTimeSource)?
    /// The time as last read; nil if since then something was called, the loop has slept, or a run or another
    /// pass has begun. Without it bench-guard's pass.other-mode, whose runs have one pass each, takes 14 %
    /// more instructions.
    private(set) var knownNow: LoopInstant?
    /// The last wait was no longer than `spinDuration`. Set by `Sleep`.
    var hasWaitedShortly = false
    /// The number of activations that have begun or ended.
    private(set) var era: UInt32 = 0
    /// Descriptor sources whose callback is on the stack, the innermost last.
    @exclusivity(unchecked) private(set) var serving: [RunLoop.Source] = []
    /// The innermost run.
    private(set) var run = RunOnStack()
    /// The mode that was run last.
    private(set) var lastRun: (name: RunLoop.Mode, index: Int, modeLoop: ModeLoop)?
    /// Set around each drain, by a pass and by the bridges: libdispatch does not tell a nested run that the
    /// queue is being drained.
    var isDrainingMainQueue = false
    /// The bridge to Foundation's run loop of the same thread; nil if that loop is not served.
    private(set) var bridge: (any FoundationBridge)?
    /// Foundation's run loop runs in place of this loop's sleep. Set by the bridges that run it, and by an
    /// activation inside it, during which this loop does not sleep.
    var isInFoundation = false
    /// The main queue, or a source of Foundation's loop, was served while this loop slept, and no pass has
    /// counted that yet. Set by the bridges, which find that out; the pass that counts it takes it.
    var wasServedAsleep = false
    private(set) var isEnding = false
    /// An empty buffer whose memory the next performed blocks use. With a new buffer each time
    /// bench-guard's block.performed.alone takes 20 % more instructions.
    private var spareBlocks = PerformedBlocks()
    /// Also changed by a test, which sets its maximum.
    @exclusivity(unchecked) var deferred = DeferredWorkList()
    /// See `RunLoop.attachment(_:orMake:)`.
    private(set) var attachments: [AnyObject] = []
    /// Closures that the current passes are calling, for the start of a pass. Set by `ModePerforms`.
    var performing: [OrderedPerform] = []
    /// The number of passes so far.
    private(set) var passes: UInt = 0
    private var hasRunInCommonModes = false
    /// See `ThreadLoops`. Set once, by `RunLoop.adoptThread`.
    var threadKey: UInt = 0

    /// The time for the start of a run and for a pass. Within a pass the clock is read again only if
    /// something was called or the loop has slept since the last reading: between two steps the time hardly
    /// changes.
    var now: LoopInstant {
        if let knownNow { return knownNow }
        let now = LoopClock.now
        // A test may move its clock at any time.
        if timeSource == nil { knownNow = now }
        return now
    }

    init(_ attention: Attention) {
        self.attention = attention
        kernel = LoopKernel(attention)
    }

    // MARK: Time

    /// Called when something was called, the loop has slept, or a run or another pass begins.
    func forgetNow() { knownNow = nil }

    func setTimeSource(_ source: (any LoopTimeSource)?) {
        LoopClock.setTimeSource(source)
        timeSource = source
        knownNow = nil
        // The timerfd is set to an instant of the machine's clock.
        kernel.disarmTimer()
    }

    // MARK: Runs and passes

    /// - Returns: The outer run, for `endRun(outer:)`.
    func beginRun(mayDeferWork: Bool) -> RunOnStack {
        let outer = run
        run = RunOnStack(servedInOuterRuns: serving.count, mayDeferWork: mayDeferWork)
        return outer
    }

    /// No later pass of the innermost run would do work that is deferred from here on.
    func stopDeferring() { run.mayDeferWork = false }

    func endRun(outer: RunOnStack) { run = outer }

    func noteRun(of name: RunLoop.Mode, _ index: Int, _ modeLoop: ModeLoop) {
        lastRun = (name, index, modeLoop)
    }

    /// Called when an activation begins or ends; `current` is then the running mode, or nil if none runs.
    func beginEra(of current: ModeLoop?) {
        era &+= 1
        current?.begin(era: era)
    }

    func beginPass() { passes &+= 1 }

    /// Notes that the loop was to be run in the common modes.
    ///
    /// - Returns: False if that was noted before.
    func noteRunInCommonModes() -> Bool {
        defer { hasRunInCommonModes = true }
        return !hasRunInCommonModes
    }

    func beginServing(_ source: RunLoop.Source) { serving.append(source) }

    func endServing() { serving.removeLast() }

    /// Exchanges `blocks` for the empty buffer that is kept between two block points.
    func exchangeSpareBlocks(_ blocks: inout PerformedBlocks) { swap(&blocks, &spareBlocks) }

    func deferWork(_ work: any DeferredWork) {
        // The clock may be an object of the program, which is called outside of the access.
        let began = deferred.isEmpty ? LoopClock.now : nil
        deferred.append(work, began: began)
    }

    /// - Returns: The oldest piece of deferred work; nil if there is none.
    func takeDeferredWork() -> (any DeferredWork)? { deferred.popFirst() }

    // MARK: Other loops

    func beginEmbedding() {
        isEmbedded = true
        attention.setEmbedded(true)
    }

    func endEmbedding() {
        isEmbedded = false
        attention.setEmbedded(false)
    }

    func turn<Result>(_ body: () -> Result) -> Result {
        // A callback may make a turn inside another one.
        let outer = isInTurn
        isInTurn = true
        defer { isInTurn = outer }
        return body()
    }

    /// Traps if the loop has a bridge already.
    ///
    /// - Parameter function: The function of `RunLoop` that was called.
    func setBridge(_ new: any FoundationBridge, function: String) {
        if let bridge {
            // Not a precondition: in release builds its message would be lost.
            fatalError(
                "RunLoop.\(function): the loop has a bridge to Foundation's run loop already (\(bridge.summary)). A thread "
                    + "has one at a time: call endFoundationBridge() first.")
        }
        bridge = new
    }

    /// - Returns: The bridge, which is no longer used; nil if there was none.
    func removeBridge() -> (any FoundationBridge)? { bridge.take() }

    // MARK: What is kept with the loop

    func attach(_ object: AnyObject) {
        // Not appended in place: with that, each read of the array is checked for exclusive access. One of
        // five things that are worth less than 2 % each, and together 5 % of the instructions of
        // bench-guard's http.request and a tenth of the rate of W5 with 64 in flight: this, the cast of an
        // attachment, `DeferredWorkList`, the tables of `DelegateClass`, and the cookie store's reference to
        // itself.
        attachments = attachments + [object]
    }

    func removeAttachments() { attachments = [] }

    // MARK: The end of the thread

    func beginEnding() { isEnding = true }

    func closeModes() {
        lastRun = nil
        kernel.close()
    }
}

/// An activation while it is on the stack. Loop's thread only.
struct RunOnStack {
    /// The number of elements in `LoopThreadState.serving` when the activation began.
    var servedInOuterRuns = 0
    /// The activation makes further passes after a callback, or another activation follows at once.
    var mayDeferWork = false
}
