/// The state of a run loop that all threads may touch: one struct behind one lock.
///
/// Membership (which members a mode has) is decided here; the `ev_loop` of a mode is a projection of it,
/// which the loop's own thread updates before it looks at the kernel. Locks are taken in the order member
/// (timer, source, observer), then loop; user code is never called with either held.
///
/// A change that concerns several variables is a method here. Each variable that is not private says which
/// other files change it, and why.
struct LoopState: ~Copyable {
    /// Changed by sources, timers and observers too, which enter and leave with their own locks held as well:
    /// their state decides whether they may.
    var modes: [ModeState] = []
    /// By name. (A key type of our own would make the runtime search all libraries for its `Hashable`
    /// conformance when the first loop is made: 0.1 ms of W16's start.)
    private var indices: [String: Int] = [:]
    private var lastNamed = 0

    /// Indices of the modes that the common name stands for.
    private(set) var commonModes: [Int] = []
    // Filled by `ModeExecutor`, whose constructors need the loop; `ThreadEnd` releases the second without the
    // lock.
    var executors: [RunLoop.Mode: RunLoop.ModeExecutor] = [:]
    var taskExecutors: [RunLoop.Mode: RunLoop.ModeTaskExecutor] = [:]

    // Added under the common name, for modes that become common later (rule RL-21). Changed where `modes` is.
    var commonSources = ObjectSet<RunLoop.Source>()
    var commonObservers = ObjectSet<RunLoop.Observer>()
    var commonTimers: Set<Timer> = []
    var commonBlocks = BlockQueue()

    /// Counts the activities of the observers of all modes. An observer in several modes counts in each of
    /// them.
    private var activityCounts = ActivityCounts()
    // `ThreadEnd` takes these two out, and releases them without the lock.
    /// Made on first use by `NotificationQueue`.
    var notifications: QueuedNotifications?
    /// Changed by `RunLoop+Ordered`, and by `ModePerforms` when a pass begins.
    var orderedPerforms = OrderedPerforms()

    /// Running activations, the innermost last. Changed by `Activation`, which reports the outermost one to
    /// `Attention` in the same step, and by `+Stopping`.
    var activations: [RunningActivation] = []
    /// Descriptor sources whose callbacks run the innermost activation, which does not serve them (rule
    /// SRC-26). Changed by `Activation`.
    var servedInOuterRuns: [RunLoop.Source] = []
    /// False once the thread has ended: nothing can be added any more.
    private(set) var isAlive = true
    /// Changed by `Activation` together with `activations`.
    var history = RunHistory()
    /// Set by the thread, which alone knows it, when it makes the loop; by `RunLoopThread` too.
    var threadName: String?
    /// The kernel's number of the thread, set by it; 0 as long as the loop has none.
    var threadNumber: Int32 = 0
    /// The instant up to which the time of the running mode has been counted.
    private(set) var countedUntil = LoopInstant(nanoseconds: 0)
    // The bridge and the clock of `LoopThreadState`, for other threads. `RunLoop` sets both places at once.
    /// A description of the bridge to Foundation's run loop, if there is one.
    var bridge: String?
    var timeSource: (any LoopTimeSource)?
    private var sequence: UInt64 = 0
    /// Changed in `+Timers`, where this type decides about timers.
    var firingTimers: [FiringTimer] = []
    /// The last `TimerRegistration.order` that was given out. Changed in `+Timers` too.
    var lastTimerOrder: UInt32 = 0

    init() {
        for mode in [RunLoop.Mode.default, .tracking] {
            makeCommon(index(of: mode))
        }
    }

    /// Whether the innermost activation has been asked to stop.
    var isStopped: Bool { activations.last?.isStopped ?? false }

    var runningMode: RunLoop.Mode? { activations.last.map { modes[$0.mode].name } }

    func existingIndex(of mode: RunLoop.Mode) -> Int? {
        // Nearly always this is the mode that was named last, which is found without hashing the name:
        // otherwise bench-guard's timer.scheduled takes 31 % more instructions.
        if lastNamed < modes.count, modes[lastNamed].name == mode { return lastNamed }
        return indices[mode.rawValue]
    }

    /// The index of `mode`; naming a mode creates it (rule RL-10).
    mutating func index(of mode: RunLoop.Mode) -> Int {
        if let index = existingIndex(of: mode) {
            lastNamed = index
            return index
        }
        let index = modes.count
        modes.append(ModeState(name: mode, index: index))
        indices[mode.rawValue] = index
        return index
    }

    /// - Returns: False if the mode was already common.
    @discardableResult
    mutating func makeCommon(_ index: Int) -> Bool {
        guard !modes[index].isCommon else { return false }
        modes[index].isCommon = true
        commonModes.append(index)
        return true
    }

    /// The modes that `mode` names: itself, or every common one.
    mutating func indices(named mode: RunLoop.Mode) -> [Int] {
        mode == .common ? commonModes : [index(of: mode)]
    }

    mutating func nextSequence() -> UInt64 {
        sequence += 1
        return sequence
    }

    /// Counts the time since the last change for the mode that has been running: that of the innermost
    /// activation, since outer ones are not served meanwhile.
    mutating func countTime(until now: LoopInstant) {
        guard now != countedUntil else { return }
        if let running = activations.last {
            modes[running.mode].ranNanoseconds += now.nanoseconds - countedUntil.nanoseconds
        }
        countedUntil = now
    }

    /// The activities that are observed in any mode.
    var observedActivities: RunLoop.Activity { RunLoop.Activity(rawValue: activityCounts.observed) }

    /// - Parameter index: A mode that does not hold the observer; for `remove`, one that does.
    mutating func add(_ observer: RunLoop.Observer, toMode index: Int) {
        modes[index].add(observer)
        activityCounts.add(observer.activities.rawValue)
    }

    mutating func remove(_ observer: RunLoop.Observer, fromMode index: Int) {
        modes[index].remove(observer)
        activityCounts.remove(observer.activities.rawValue)
    }

    // The next three functions are inlined, since the state would be copied for the call: without inlining
    // the first, bench-guard's pass.other-mode takes 8 % more instructions, and without the second or the
    // third 4 %.

    /// Whether the queues hold blocks that `mode` runs. Blocks in the intake do not count.
    @inline(__always)
    func hasQueuedBlocks(for mode: Int) -> Bool {
        !modes[mode].blocks.isEmpty || (modes[mode].isCommon && !commonBlocks.isEmpty)
    }

    /// Whether blocks are queued or sources signalled in `mode`.
    @inline(__always)
    func hasWork(for mode: Int) -> Bool { hasQueuedBlocks(for: mode) || !modes[mode].signalled.isEmpty }

    /// A mode is empty when it holds neither source, timer nor block (rules RL-12 and RL-13).
    @inline(__always)
    func isEmpty(_ mode: Int, _ intake: BlockIntake) -> Bool {
        guard !modes[mode].holdsSources, modes[mode].timers.count == 0 else { return false }
        return !hasQueuedBlocks(for: mode) && !intake.holdsBlocks(for: mode, isCommon: modes[mode].isCommon)
    }

    var pendingWork: PendingWork {
        var work: PendingWork = []
        if let notifications {
            if !notifications.isEmpty(.asap) { work.insert(.notifications) }
            if !notifications.isEmpty(.whenIdle) { work.insert(.idleNotifications) }
        }
        if !orderedPerforms.isEmpty { work.insert(.orderedPerforms) }
        return work
    }

    /// Makes the loop refuse everything from here on: its thread has ended.
    mutating func end() {
        isAlive = false
        (activations, servedInOuterRuns) = ([], [])
    }

    /// Notes that the loop was to be run in a mode that is empty. (Inside another run that is no reason why
    /// the loop does not run.)
    mutating func noteEmptyRun(in mode: RunLoop.Mode) {
        if activations.isEmpty { history.noteEmptyRun(in: mode.rawValue) }
    }

    /// Moves the blocks of the intake to the queues of their modes.
    mutating func collectBlocks(from intake: BlockIntake) {
        intake.empty { block, queue in append(block, to: queue) }
    }

    mutating func append(_ block: PerformedBlock, to queue: BlockQueueName) {
        let sequence = nextSequence()
        switch queue {
        case .common: commonBlocks.append(block, sequence: sequence)
        case .mode(let mode): modes[mode].blocks.append(block, sequence: sequence)
        }
    }

    mutating func append(_ block: PerformedBlock, to queues: Set<BlockQueueName>) {
        let shared = BlockQueue.Shared(block, in: queues)
        let sequence = nextSequence()
        for queue in queues {
            switch queue {
            case .common: commonBlocks.append(shared, sequence: sequence)
            case .mode(let mode): modes[mode].blocks.append(shared, sequence: sequence)
            }
        }
    }

    /// Moves the blocks that `mode` runs to the empty `blocks`, in order. They are removed from every queue
    /// that they were in.
    mutating func takeBlocks(
        for mode: Int, _ intake: BlockIntake, into blocks: inout PerformedBlocks
    ) {
        if !intake.isEmpty {
            if !hasQueuedBlocks(for: mode),
                intake.exchange(for: mode, isCommon: modes[mode].isCommon, &blocks)
            {
                return
            }
            collectBlocks(from: intake)
        }
        guard hasQueuedBlocks(for: mode) else { return }
        var none = BlockQueue()
        let others =
            modes[mode].isCommon
            ? modes[mode].blocks.takeAll(with: &commonBlocks, into: &blocks)
            : modes[mode].blocks.takeAll(with: &none, into: &blocks)
        for queue in others {
            switch queue {
            case .common: commonBlocks.removeTaken()
            case .mode(let other): modes[other].blocks.removeTaken()
            }
        }
    }
}

// MARK: - For the pass

extension LoopState {
    /// Collects the changes that other threads have made, and decides whether the loop may sleep.
    ///
    /// - Parameter spins: Whether the wait begins by watching `attention` without sleeping.
    mutating func prepareToLook(
        mode: Int, now: LoopInstant, maySleep: Bool, updatesWatchers: Bool, spins: Bool,
        _ attention: Attention
    ) -> ModeState.WaitPlan {
        var wasWoken = takeRequest(attention)
        let changes =
            updatesWatchers && modes[mode].hasOutdated ? modes[mode].takeOutdated() : nil
        let nearest = withTimers(of: mode) { $0.nearest }
        let timersAreDue = nearest.map { $0 <= now } ?? false
        // A change made from now on is followed by a request, which finds that the loop waits.
        let mayWait =
            maySleep && !wasWoken && !isStopped && !timersAreDue && changes == nil
        let waits = mayWait && attention.beginWaiting(spins: spins)
        if mayWait && !waits { wasWoken = takeRequest(attention) }
        return ModeState.WaitPlan(
            nearestTimer: nearest, wasWoken: wasWoken, isCommon: modes[mode].isCommon, waits: waits,
            changes: changes)
    }

    /// Takes the request for attention, if there is one, for the innermost activation.
    ///
    /// - Returns: Whether there was a request.
    mutating func takeRequest(_ attention: Attention) -> Bool {
        guard attention.takeRequest() else { return false }
        activations[activations.count - 1].tookWakeUp = true
        return true
    }
}

/// A running activation as other threads see it.
struct RunningActivation {
    let mode: Int
    /// Whether it ends after one source.
    let returnsAfterSource: Bool
    /// Whether `stop()` applies to it, rather than to the activation outside it.
    let isStoppable: Bool
    var isStopped = false
    var tookWakeUp = false
}
