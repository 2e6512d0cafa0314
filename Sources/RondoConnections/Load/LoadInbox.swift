internal import RondoCore
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// Messages and commands that other threads send to a load, kept until it takes them. Any thread may use it.
struct LoadInbox: ~Copyable, Sendable {
    /// Events outside the load that its next pass handles.
    struct Event: OptionSet {
        let rawValue: UInt8

        /// The timeout may have been reached.
        static let timeCheck = Event(rawValue: 1)
        /// The cookies for which a request waits can be read.
        static let cookiesReadable = Event(rawValue: 2)
        /// More bytes may be taken; see `RateLimiter`.
        static let ratePauseOver = Event(rawValue: 4)
        /// The network may be available again; see `ConnectivityWait`.
        static let networkMayBeBack = Event(rawValue: 8)
    }

    /// Messages for the next pass of the load.
    struct Messages {
        /// The delegate's reply, from the delegate queue.
        var reply: DelegateCall.Reply?
        var events: Event = []
    }

    /// The life of the load, as far as its client and its delegate queue have brought it. (A load can be
    /// ended before it has started; so that is no case of it.)
    enum Life {
        /// Its client has not ended it.
        case running
        /// The client has ended the load, and is not being told of that end yet.
        case aborted(Abortion)
        /// The end that the client has commanded is being reported.
        case reported
        /// The delegate queue has made the last call: the load only has to leave its loops.
        case over
    }

    /// The command of the client that ends the load.
    struct Abortion {
        let failure: LoadFailure
        /// Whether the partial file of a download is handed over with the end.
        let keepsDownload: Bool
        /// The partial file of a download that had failed, and whose end was dropped because the client has
        /// ended it.
        var partial: PartialDownload?
    }

    // Not private: otherwise the compiler could not lay out an inbox in another file.
    struct State: ~Copyable {
        var messages = Messages()
        /// Calls that wait for the delegate queue; nil if there never was one.
        var calls: QueuedCalls?
        var life = Life.running
    }

    private let state = Mutex(State())
    /// Whether calls are made through a delegate queue, or were.
    private let hasQueue = Atomic(false)
    /// Whether the program has held the load back.
    private let isHeldBack = Atomic(false)
    /// Whether the load is suspended: nothing is sent, read or reported.
    private let suspended = Atomic(false)
    /// Whether the client has ended the load. Set together with `State.life`, for reading without the lock.
    private let aborted = Atomic(false)
    /// The number of responses and sets of cookies that other threads are storing.
    private let storing = Atomic(0)
    /// Whether the load has still to enter its run loops.
    private let starting = Atomic(false)

    // MARK: - Messages

    func put(_ reply: DelegateCall.Reply) {
        // `Load.reply(_:)` will give the reply.
        if case .later = reply { return }
        state.withLock { $0.messages.reply = reply }
    }

    func put(_ event: Event) { state.withLock { $0.messages.events.formUnion(event) } }

    func take() -> Messages {
        state.withLock { state in
            defer { state.messages = Messages() }
            return state.messages
        }
    }

    /// Takes the event of a time check, and no other message.
    func takeTimeCheck() -> Bool {
        state.withLock { $0.messages.events.remove(.timeCheck) != nil }
    }

    // MARK: - Calls by the delegate queue

    /// Whether no call was made through a queue so far.
    var callsOnLoop: Bool { !hasQueue.load(ordering: .acquiring) }

    /// Notes that calls are made through a delegate queue from now on.
    ///
    /// - Returns: The calls that wait for it.
    func beginQueueing() -> QueuedCalls {
        state.withLock { state in
            if let calls = state.calls { return calls }
            let calls = QueuedCalls()
            // The load was suspended before there were calls to suspend.
            if isSuspended, !isAborted { calls.setSuspended(true) }
            state.calls = calls
            hasQueue.store(true, ordering: .releasing)
            return calls
        }
    }

    /// Whether a call waits for the delegate queue.
    var hasWaitingCalls: Bool { state.withLock { $0.calls }?.hasWaiting ?? false }

    /// Drops the calls that wait.
    func dropCalls() { state.withLock { $0.calls }?.removeAll() }

    /// Notes that the queue has made the last call.
    func noteLastCall() {
        let ended = state.withLock { state -> Life in
            defer { state.life = .over }
            return state.life
        }
        // Released after the lock: it may own the partial file of a download.
        withExtendedLifetime(ended) {}
    }

    var hasMadeLastCall: Bool { state.withLock { if case .over = $0.life { true } else { false } } }

    // MARK: - Flow control

    func holdBack(_ holds: Bool) { isHeldBack.store(holds, ordering: .sequentiallyConsistent) }

    /// Whether the program takes content: it has neither suspended the load nor held it back, and not too
    /// many calls wait for the delegate queue.
    var programTakesContent: Bool {
        !isHeldBack.load(ordering: .sequentiallyConsistent) && !isSuspended && callsAllowReading
    }

    /// Whether the calls that wait for the delegate queue are few enough to read more.
    var callsAllowReading: Bool { callsOnLoop || state.withLock { $0.calls }?.mayRead ?? true }

    // MARK: - The start

    func putStart() { starting.store(true, ordering: .releasing) }

    /// Whether the load is to enter its run loops; true once.
    func takeStart() -> Bool { starting.exchange(false, ordering: .acquiringAndReleasing) }

    // MARK: - Commands of the client

    /// Ends the load with `failure`, and drops the calls that wait for the delegate queue. Does nothing if
    /// the client has ended the load before (then the end itself may be among them, with the partial file of
    /// a download), or if the last call was made.
    func abort(_ failure: LoadFailure, keepingDownload keeps: Bool) {
        // `Load` takes the command under this lock too, and adds the calls that report the end afterwards; so
        // they are not dropped here.
        let (calls, dropped) = state.withLock { state -> (QueuedCalls?, QueuedCalls.Removed?) in
            guard case .running = state.life else { return (nil, nil) }
            aborted.store(true, ordering: .releasing)
            let dropped = state.calls?.takeAll()
            state.life = .aborted(
                Abortion(failure: failure, keepsDownload: keeps, partial: keeps ? dropped?.partial : nil))
            return (state.calls, dropped)
        }
        withExtendedLifetime(dropped) {}
        calls?.setSuspended(false)
    }

    var isAborted: Bool { aborted.load(ordering: .acquiring) }

    /// Whether the partial file of a download is to be handed over with the end, which is not being reported
    /// yet.
    var keepsDownload: Bool {
        state.withLock { if case .aborted(let abortion) = $0.life { abortion.keepsDownload } else { false } }
    }

    /// Notes the partial file of a download whose end was dropped because the client has ended it.
    func putDropped(_ partial: PartialDownload) {
        state.withLock { state in
            guard case .aborted(var abortion) = state.life, abortion.keepsDownload else { return }
            abortion.partial = partial
            state.life = .aborted(abortion)
        }
    }

    /// The command that has ended the load, for reporting it; nil from the second call on.
    func takeAbortion() -> Abortion? {
        state.withLock { state in
            guard case .aborted(let abortion) = state.life else { return nil }
            state.life = .reported
            return abortion
        }
    }

    /// Suspends the calls that wait, or continues them.
    func suspend(_ suspends: Bool) {
        suspended.store(suspends, ordering: .sequentiallyConsistent)
        state.withLock { $0.calls }?.setSuspended(suspends)
    }

    var isSuspended: Bool { suspended.load(ordering: .sequentiallyConsistent) }

    // MARK: - Storing

    var isStoring: Bool { storing.load(ordering: .acquiring) > 0 }

    func beginStoring() { storing.add(1, ordering: .acquiringAndReleasing) }

    /// - Returns: Whether everything is stored now.
    func endStoring() -> Bool { storing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}
