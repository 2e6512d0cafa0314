internal import CEv
internal import Logging
internal import Synchronization

/// A run loop: waits for timers, sources and blocks of one thread, and calls them.
///
/// Each thread has exactly one, made when it is first asked for. A run loop runs in one *mode* at a time,
/// and serves only what was scheduled in that mode: everything else keeps its event until its own mode runs.
///
/// A run loop needs two file descriptors, and one more for each mode. Where the kernel has none, or no room in epoll sets,
/// it runs all the same, by `poll(2)`: timers and what is ready come in time, what other threads ask for up to 10 ms late.
/// It says so in the log, once a minute at most, and goes back by itself when there is what it needs.
///
/// `add`, `remove`, `perform`, `stop` and `wakeUp` may be called from any thread; the functions that run the
/// loop act on the calling thread's own. The counterpart of Apple's `NSRunLoop` and `CFRunLoop`.
public final class RunLoop: NSObject, Sendable {
    public typealias Mode = Foundation.RunLoop.Mode

    // MARK: On the loop's thread only

    /// `nonisolated(unsafe)`: touched by the loop's own thread only; the functions that do say so by
    /// `requireOwnThread()` or are reached from one that did.
    nonisolated(unsafe) let owner = LoopOwner()

    // MARK: Any thread, behind the lock

    let state = Mutex(LoopState())
    let attention: Attention
    let intake: BlockIntake
    /// `LoopState.observedActivities`, written under the lock, so that where nobody observes a pass need not
    /// take it to know that.
    private let observed = Atomic<UInt>(0)
    /// `spinDuration`.
    let spinNanoseconds = Atomic<Int64>(0)

    // MARK: Immutable

    let isMain: Bool

    fileprivate init(isMain: Bool) {
        self.isMain = isMain
        attention = Attention()
        intake = BlockIntake(attention)
    }

    /// A loop as it is when its thread has ended: nothing can be added to it.
    static func withoutThread() -> RunLoop {
        let loop = RunLoop(isMain: false)
        loop.state.withLock { $0.isAlive = false }
        loop.attention.end()
        loop.intake.close()
        return loop
    }

    // MARK: - Obtaining a loop

    /// The run loop of the calling thread, made on first use. Obtaining it does not run it (rule RL-3).
    @available(*, noasync, message: "A task has no thread of its own; name the loop that you mean.")
    public static var current: RunLoop { currentLoop() }

    /// The run loop of the main thread; any thread may ask. The program runs it: nothing else does (rule
    /// RL-3).
    public static let main = RunLoop(isMain: true)

    package static func currentLoop() -> RunLoop {
        if let pointer = pthread_getspecific(LoopOwner.key) {
            // The thread's slot holds a reference (see `LoopOwner.adopt`), so the object is alive.
            return Unmanaged<RunLoop>.fromOpaque(pointer).takeUnretainedValue()
        }
        let loop = Thread.isMainThread ? main : RunLoop(isMain: false)
        loop.adoptThread()
        return loop
    }

    /// Whether the calling thread is the one that this loop belongs to.
    package var isCurrent: Bool {
        if let pointer = pthread_getspecific(LoopOwner.key) {
            return pointer == Unmanaged.passUnretained(self).toOpaque()
        }
        return isMain && Thread.isMainThread
    }

    /// To be called under the lock when observers have changed.
    func noteObservedActivities(_ state: borrowing LoopState) {
        observed.store(state.observedActivities.rawValue, ordering: .relaxed)
    }

    func mayBeObserved(_ activity: Activity) -> Bool {
        observed.load(ordering: .relaxed) & activity.rawValue != 0
    }

    // MARK: - State

    /// The mode of the innermost running activation, or nil while the loop does not run (rule RL-11).
    public var currentMode: Mode? { state.withLock { $0.runningMode } }

    /// Whether the loop sleeps just now, waiting for something to do (rule RL-51).
    public var isWaiting: Bool { attention.isWaiting }

    /// Modes and what is in them, in the spirit of `CFShow`.
    public override var debugDescription: String { describeInFull() }

    // MARK: - Stopping and waking

    /// Ends the innermost activation of this loop, after the pass it is in (rules RL-43 to RL-47).
    ///
    /// A sleeping loop is woken. A loop that is not running ignores it and does not remember it.
    /// `run()` is a repetition of activations and does not end by it (rule RL-35); `run(in:for:…)` does.
    /// - Note: Any thread. The counterpart of `CFRunLoopStop`.
    public func stop() {
        let isRunning = state.withLock { state in
            guard !state.activations.isEmpty else { return false }
            state.activations[state.activations.count - 1].isStopped = true
            return true
        }
        Trace.request(self, .stop)
        if isRunning { askForAttention()?.wake() }
    }

    /// Makes a sleeping loop look again; by itself it ends no run function (rules RL-49 and RL-50).
    ///
    /// - Note: Any thread. The counterpart of `CFRunLoopWakeUp`.
    public func wakeUp() {
        Trace.request(self, .wakeUp)
        askForAttention()?.wake()
    }

    /// Asks for the attention of the loop's thread.
    ///
    /// - Returns: What the caller has to write, with no lock held; nil where the loop is awake.
    func askForAttention() -> WakeUp? {
        attention.ask() ? state.withLock { $0.wakeUp } : nil
    }

    // MARK: - Blocks

    /// Runs `block` on this loop's thread the next time the loop runs in the default mode, and wakes it.
    ///
    /// - Note: Any thread. Blocks run in the order in which they were performed (rules RL-60 to RL-64).
    public func perform(_ block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inMode: .default, waking: true)
    }

    /// Runs `block` once on this loop's thread, the next time the loop runs in one of `modes`, and wakes it.
    ///
    /// - Parameter modes: `.common` stands for every common mode, those added later too. None: nothing
    ///   happens.
    public func perform(inModes modes: [Mode], block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inModes: modes, waking: true)
    }

    /// As `perform(inModes:block:)`, without waking a sleeping loop: the block waits for its next pass.
    ///
    /// The counterpart of `CFRunLoopPerformBlock`, which is documented so (rule RL-61).
    public func performWithoutWaking(inModes modes: [Mode], block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inModes: modes, waking: false)
    }

    private func enqueue(_ block: consuming PerformedBlock, inModes modes: [Mode], waking: Bool) {
        guard let first = modes.first else { return Trace.request(self, .perform) }
        guard modes.count > 1 else { return enqueue(block, inMode: first, waking: waking) }
        let isAlive = state.withLock { [block] state in
            guard state.isAlive else { return false }
            // What was performed before it goes before it.
            state.collectBlocks(from: intake)
            let queues = modes.map { $0 == .common ? BlockQueueName.common : .mode(state.index(of: $0)) }
            state.append(block, to: Set(queues))
            return true
        }
        noteEnqueued(inMode: first, mustWake: isAlive && waking && attention.ask())
    }

    private func enqueue(_ block: consuming PerformedBlock, inMode mode: Mode, waking: Bool) {
        var block = Optional(block)
        var answer = intake.push(&block, mode: mode, waking: waking)
        if case .isForOtherMode = answer {
            answer = state.withLock { state in
                let queue = mode.namesCommonModes ? BlockQueueName.common : .mode(state.index(of: mode))
                return intake.push(&block, mode: mode, queue: queue, waking: waking) {
                    state.append($0, to: $1)
                }
            }
        }
        guard case .taken(let isFirstToAsk, let mustWake) = answer else {
            return Trace.request(self, .perform, mode: mode)
        }
        if isFirstToAsk || !waking {
            noteEnqueued(inMode: mode, mustWake: mustWake)
        } else {
            // Whoever was the first has seen to the rest.
            Trace.request(self, .perform, mode: mode)
        }
    }

    private func noteEnqueued(inMode mode: Mode, mustWake: Bool) {
        Trace.request(self, .perform, mode: mode)
        if mustWake { state.withLock { $0.wakeUp }?.wake() }
        warnUnlessRun()
    }
}

/// What is known of a run while it is under way. Loop's thread only.
struct RunOnStack {
    /// How many of `LoopOwner.serving` were on the stack when it began.
    var servedFurtherOut = 0
    /// The run makes further passes after a callback, or another run follows at once.
    var mayDeferWork = false
}

/// What only the loop's thread touches. (For `@exclusivity(unchecked)` see `ModeLoop`.)
final class LoopOwner {
    static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { RunLoop.threadEnds($0) }
        precondition(status == 0, "Rondo: no thread-specific key is left for the run loops")
        return key
    }()

    static let log = Logger(label: "rondo.core")

    @exclusivity(unchecked) var modeLoops: [ModeLoop?] = []
    @exclusivity(unchecked) var wakeUp: WakeUp?
    /// What the kernel has refused the loop last, and when that was last logged.
    @exclusivity(unchecked) var refusal: SystemError?
    @exclusivity(unchecked) var lastComplaint: LoopInstant?
    /// The errno of a look at the kernel, until it has been dealt with; 0: it has not failed.
    @exclusivity(unchecked) var lookFailure: Int32 = 0
    @exclusivity(unchecked) var isEmbedded = false
    /// Inside a turn that a foreign loop makes.
    @exclusivity(unchecked) var isTurning = false
    /// The clock of this loop, if it is not the machine's.
    @exclusivity(unchecked) var timeSource: (any LoopTimeSource)?
    /// The time, as long as nothing has been called and the loop has not slept since it was read.
    @exclusivity(unchecked) var knownNow: LoopInstant?
    /// What the timerfd is set to.
    @exclusivity(unchecked) var armed = LoopInstant.never
    /// The last wait was no longer than `spinDuration`.
    @exclusivity(unchecked) var hasWaitedShortly = false
    /// Counts activations that began or ended.
    @exclusivity(unchecked) var era: UInt32 = 0
    /// Descriptor sources whose callback is on the stack, the innermost last.
    @exclusivity(unchecked) var serving: [RunLoop.Source] = []
    /// The innermost run.
    @exclusivity(unchecked) var run = RunOnStack()
    /// The mode that was run last, and its index.
    @exclusivity(unchecked) var lastRun: (mode: RunLoop.Mode, index: Int)?
    @exclusivity(unchecked) var isDrainingMainQueue = false
    @exclusivity(unchecked) var isEnding = false
    /// Empty: room for the blocks that are performed next.
    @exclusivity(unchecked) var spareBlocks = PerformedBlocks()
    var deferred = DeferredWorkList()
    /// See `RunLoop.attachment(_:orMake:)`.
    var attachments: [AnyObject] = []
}

extension RunLoop {
    // MARK: - The thread

    private func adoptThread() {
        // Retained for the thread; released by `threadEnds`, which the thread library calls.
        pthread_setspecific(LoopOwner.key, Unmanaged.passRetained(self).toOpaque())
        let name = Thread.current.name
        let number = rondo_thread_number()
        state.withLock { state in
            if let name, !name.isEmpty { state.threadName = name }
            state.threadNumber = number
        }
    }

    /// The thread is over: every source leaves every mode, with its cancel callback, blocks are released
    /// unrun (rule RL-6). In a cancel callback, `RunLoop.current` is still this loop.
    fileprivate static func threadEnds(_ pointer: UnsafeMutableRawPointer?) {
        guard let pointer else { return }
        let loop = Unmanaged<RunLoop>.fromOpaque(pointer)
        pthread_setspecific(LoopOwner.key, pointer)
        loop.takeUnretainedValue().tearDown()
        pthread_setspecific(LoopOwner.key, nil)
        loop.release()
    }

    /// The calling thread's loop ends now, and not with its thread.
    static func endOfThread() { threadEnds(pthread_getspecific(LoopOwner.key)) }

    private func tearDown() {
        owner.isEnding = true
        // What is released must not be released under the lock: a deinit may call back.
        var blocks = PerformedBlocks()
        let members = state.withLock { state in
            state.isAlive = false
            state.activations = []
            attention.end()
            intake.close()
            state.collectBlocks(from: intake)
            let names = state.modes.map(\.name)
            let members = state.modes.enumerated().map { index, mode in
                (
                    name: names[index], sources: mode.listed, timers: state.timers(inMode: index),
                    observers: mode.observers
                )
            }
            for index in state.modes.indices { state.modes[index].blocks.removeAll(into: &blocks) }
            state.commonBlocks.removeAll(into: &blocks)
            return members
        }
        for mode in members {
            for timer in mode.timers { remove(timer, forMode: mode.name) }
            for observer in mode.observers { remove(observer, forMode: mode.name) }
            for source in mode.sources { remove(source, forMode: mode.name) }
        }
        let common = state.withLock { state in
            defer {
                state.taskExecutors = [:]
                state.wakeUp = nil
            }
            return (
                state.commonSources, state.commonObservers, state.commonTimers, state.executors,
                state.taskExecutors
            )
        }
        for source in common.0 { _ = source.unregister(from: self) }
        for observer in common.1 { _ = observer.unregister(from: self) }
        for timer in common.2 { _ = timer.unregister(from: self) }
        for executor in common.3.values { executor.letGoOfLoop() }
        owner.modeLoops.removeAll()
        owner.wakeUp = nil
        // Where the thread has ended inside a callback.
        performAllDeferredWork()
        owner.attachments = []
        // A source that this kept might keep this.
        let watched = state.withLock { state in state.modes.indices.map { state.modes[$0].forgetWatchers() } }
        while blocks.popFirst() != nil {}
        withExtendedLifetime((members, common, watched)) {}
        UnservedWarning.forget(self)
    }

    /// The name of the calling thread, for messages.
    static var nameOfThread: String {
        if Thread.isMainThread { return "the main thread" }
        // On Linux a thread without a name of its own has its maker's: the number tells them apart.
        guard let name = Thread.current.name, !name.isEmpty else { return "thread \(rondo_thread_number())" }
        return "thread \(name) (\(rondo_thread_number()))"
    }

    /// The name of the loop's thread, for messages.
    var nameOfItsThreadAndNumber: String {
        if isMain { return "the main thread" }
        return state.withLock { state in
            state.threadName.map { "thread \($0) (\(state.threadNumber))" } ?? "thread \(state.threadNumber)"
        }
    }

    /// Traps when the calling thread is not the loop's own.
    func requireOwnThread(_ function: String = #function) {
        guard !isCurrent else { return }
        // Not a precondition, which loses its message in release.
        fatalError(
            "RunLoop.\(function) acts on the loop of the calling thread, which is \(Self.nameOfThread), but was "
                + "called on the loop of \(nameOfItsThreadAndNumber). Call it on that thread, or "
                + "use perform(_:) to run code there.")
    }
}
