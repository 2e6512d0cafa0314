internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A run loop: waits for timers, sources and blocks of one thread, and calls them.
///
/// Each thread has exactly one, made when it is first asked for. A run loop runs in one *mode* at a time, and
/// serves only the members of that mode: an event of any other member waits until its own mode runs.
///
/// A run loop needs two file descriptors, and one more for each mode. If the kernel has none left, or no room
/// in epoll sets, the loop still runs, by `poll(2)`: timers and ready sources are served on time, requests of
/// other threads up to 10 ms late. The loop logs that, once a minute at most, and returns to epoll by itself
/// when the kernel has room.
///
/// `add`, `remove`, `perform`, `stop` and `wakeUp` may be called from any thread; the functions that run the
/// loop act on the calling thread's own. The counterpart of Apple's `NSRunLoop` and `CFRunLoop`.
public final class RunLoop: NSObject, Sendable {
    public typealias Mode = Foundation.RunLoop.Mode

    // MARK: On the loop's thread only

    /// `nonisolated(unsafe)`: only the loop's thread touches it. Functions that use it call
    /// `requireOwnThread()` or check `isCurrent`, or are called by one that does. A Mutex instead would be
    /// locked some ten times in a pass, at 17 ns each.
    nonisolated(unsafe) let threadState: LoopThreadState

    // MARK: Any thread, behind the lock

    let state = Mutex(LoopState())
    /// The shared queues of this loop, made by `SharedQueue.join`: one for each mode with streams or loads.
    /// Locked before `state`.
    let sharedQueues = Mutex<[SharedQueue]>([])
    let attention: Attention
    let intake: BlockIntake
    let hints = LoopHints()
    /// The value of `spinDuration` in nanoseconds.
    let spinNanoseconds = Atomic<Int64>(0)

    // MARK: Immutable

    let isMain: Bool

    fileprivate init(isMain: Bool) {
        self.isMain = isMain
        attention = Attention()
        threadState = LoopThreadState(attention)
        intake = BlockIntake(attention)
    }

    /// A loop in the state of one whose thread has ended: nothing can be added to it.
    static func withoutThread() -> RunLoop {
        let loop = RunLoop(isMain: false)
        loop.state.withLock { $0.end() }
        loop.attention.end()
        loop.intake.close()
        return loop
    }

    // MARK: - Obtaining a loop

    /// The run loop of the calling thread, made on first use. Obtaining it does not run it (rule RL-3).
    @available(*, noasync, message: "A task has no thread of its own; name the loop that you mean.")
    public static var current: RunLoop { currentLoop() }

    /// The run loop of the main thread; any thread may ask for it. Only the program runs it (rule RL-3).
    public static let main: RunLoop = {
        let loop = RunLoop(isMain: true)
        // So that the loop ends with the thread (rule RL-6), also if nothing but its name was used.
        if Thread.isMainThread { loop.adoptThread() }
        return loop
    }()

    package static func currentLoop() -> RunLoop {
        if let pointer = pthread_getspecific(LoopThreadState.key) {
            // `Unmanaged` to pass through C. The thread-specific value is retained (see `adoptThread`), so
            // the loop is alive.
            return Unmanaged<RunLoop>.fromOpaque(pointer).takeUnretainedValue()
        }
        let loop = Thread.isMainThread ? main : RunLoop(isMain: false)
        if pthread_getspecific(LoopThreadState.key) == nil { loop.adoptThread() }
        return loop
    }

    /// The run loop of the calling thread; nil if it has none yet.
    static var existingLoop: RunLoop? {
        // `Unmanaged`: as in `currentLoop()`.
        pthread_getspecific(LoopThreadState.key).map {
            Unmanaged<RunLoop>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// Whether this loop belongs to the calling thread.
    package var isCurrent: Bool {
        if let pointer = pthread_getspecific(LoopThreadState.key) {
            return pointer == Unmanaged.passUnretained(self).toOpaque()
        }
        return isMain && Thread.isMainThread
    }

    // MARK: - State

    /// The mode of the innermost running activation; nil while the loop does not run (rule RL-11).
    public var currentMode: Mode? { state.withLock { $0.runningMode } }

    /// Whether the loop is waiting for something to do (rule RL-51).
    public var isWaiting: Bool { attention.isWaiting }

    /// The modes and their members, as `CFShow` prints them.
    public override var debugDescription: String { LoopDescription(of: self).text }

    // MARK: - Stopping and waking

    /// Ends the innermost activation of this loop, after its current pass (rules RL-43 to RL-47).
    ///
    /// A sleeping loop is woken. A call for a loop that is not running is ignored and not remembered. `run()`
    /// repeats activations and is not ended by this (rule RL-35); `run(in:for:…)` is.
    /// - Note: Any thread. The counterpart of `CFRunLoopStop`.
    public func stop() {
        let isRunning = state.withLock { $0.stopInnermost() }
        Trace.request(self, .stop)
        if isRunning { askForAttention()?.wake() }
    }

    /// Makes a sleeping loop look again; a wake-up alone ends no run function (rules RL-49 and RL-50).
    ///
    /// - Note: Any thread. The counterpart of `CFRunLoopWakeUp`.
    public func wakeUp() {
        Trace.request(self, .wakeUp)
        askForAttention()?.wake()
    }

    /// Asks for the attention of the loop's thread.
    ///
    /// - Returns: The object whose `wake()` the caller has to call, with no lock held; nil if the loop is
    ///   awake.
    func askForAttention() -> WakeUp? {
        attention.askForWakeUp()
    }

    /// Wakes the loop if it would otherwise notice a change late: one made on another thread, or while a
    /// foreign loop waits on its behalf.
    func wakeIfForeign() {
        if mustBeWoken { wakeUp() }
    }

    /// Whether the loop would not notice a change that the calling thread has made.
    var mustBeWoken: Bool {
        !isCurrent || threadState.isEmbedded || threadState.isInFoundation
    }

    /// Whether the caller is a callback of Foundation's, and this is the main loop, asleep in a run of
    /// Foundation's loop.
    var sleepsBelowCaller: Bool { isMain && isCurrent && threadState.isInFoundation }

    // MARK: - Blocks

    /// Runs `block` on this loop's thread the next time the loop runs in the default mode, and wakes it.
    ///
    /// - Note: Any thread. Blocks run in the order in which they were performed (rules RL-60 to RL-64).
    public func perform(_ block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inMode: .default, waking: true)
    }

    /// Runs `block` once on this loop's thread, the next time the loop runs in one of `modes`, and wakes it.
    ///
    /// - Parameter modes: `.common` stands for every common mode, those added later too. With an empty array
    ///   nothing happens.
    public func perform(inModes modes: [Mode], block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inModes: modes, waking: true)
    }

    /// Does the same as `perform(inModes:block:)` without waking a sleeping loop: the block waits for its
    /// next pass.
    ///
    /// The counterpart of `CFRunLoopPerformBlock`, which is documented to behave this way (rule RL-61).
    public func performWithoutWaking(inModes modes: [Mode], block: consuming sending @escaping () -> Void) {
        enqueue(PerformedBlock(run: block), inModes: modes, waking: false)
    }

    /// Does the same as `perform(inModes:block:)`, for a block that another thread has made.
    func perform(_ block: consuming PerformedBlock, inModes modes: [Mode]) {
        enqueue(block, inModes: modes, waking: true)
    }

    private func enqueue(_ block: consuming PerformedBlock, inModes modes: [Mode], waking: Bool) {
        guard let first = modes.first else { return Trace.request(self, .perform) }
        guard modes.count > 1 else { return enqueue(block, inMode: first, waking: waking) }
        let isAlive = state.withLock { [block] state in
            guard state.isAlive else { return false }
            // Blocks that were performed earlier go first.
            state.collectBlocks(from: intake)
            let queues = modes.map { $0 == .common ? BlockQueueName.common : .mode(state.index(of: $0)) }
            state.append(block, to: Set(queues))
            return true
        }
        noteEnqueued(inMode: first, mustWake: isAlive && waking && attention.ask())
    }

    private func enqueue(_ block: consuming PerformedBlock, inMode mode: Mode, waking: Bool) {
        var block = Optional(block)
        var answer = intake.push(&block, mode: mode.rawValue, waking: waking)
        if case .isForOtherMode = answer {
            answer = state.withLock { state in
                let queue = mode.namesCommonModes ? BlockQueueName.common : .mode(state.index(of: mode))
                return intake.push(&block, mode: mode.rawValue, queue: queue, waking: waking) {
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
            // The first block since the loop last looked has already asked for attention.
            Trace.request(self, .perform, mode: mode)
        }
    }

    private func noteEnqueued(inMode mode: Mode, mustWake: Bool) {
        Trace.request(self, .perform, mode: mode)
        if mustWake { attention.wakeUpToWrite?.wake() }
        warnUnlessRun()
    }
}
