// The part that all streams share: the state, the schedule, and the delivery of events to the delegate.
//
// A stream is in the loops and modes that the client has scheduled it in and nowhere else. An event source (a
// socket in some loop's pass, the other end of a bound pair on another thread, a read) only changes the
// state, and enqueues the stream in the queues of those modes. The delegate is called only when one of these
// queues serves the stream, and so in the right mode, on the right thread and never inside a call of the
// client, wherever the bytes came from. A stream in several modes is enqueued in all of them; the first one
// that serves it delivers the pending events, and none is left for the others (rule ST-18). A stream with a
// dispatch queue is served on that queue (rule ST-21).
//
// Threads: the state is protected by the Mutex. Delegates are called without it, and the pending events are
// checked again after every call, because a handler may close, unschedule or release its stream (rule ST-19).

internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A stream that can name its peer.
protocol StreamWithPeer: Foundation.Stream {
    /// Host and port, for the stream's name in traces; nil if there is no peer, or it has no name.
    var peerName: String? { get }
}

/// The part that all streams share: keeps a stream's state and schedule, and delivers its events to the
/// delegate.
final class StreamCore: SharedQueueClient {
    /// A weak reference to the stream.
    ///
    /// `@unchecked Sendable`: only `beginDelivery` follows it, under the lock, which lets one thread at a
    /// time deliver; by rule ST-20 that is the thread which uses the stream.
    fileprivate struct WeakStream: @unchecked Sendable {
        weak var stream: Foundation.Stream?
    }

    fileprivate struct Guarded: ~Copyable {
        var state: StreamState
        /// How many calls of the delegate are nested just now, because of nested runs. Declared here to fill
        /// a gap in the layout.
        var depth: UInt16 = 0
        var weakStream = WeakStream()
        var schedule = ClientSchedule()
        /// Boxed, because most streams have none.
        var name: StreamName?
        /// The thread that calls the delegate, while `depth` is not 0. (A `CallingThread` would make every
        /// stream 16 bytes larger.)
        var deliverer = pthread_t()

        /// Marks the stream as waiting for delivery, if events are pending.
        ///
        /// - Returns: The queues in which the caller must enqueue it.
        mutating func startWaiting() -> ClientSchedule.Queues {
            state.owed.isEmpty ? .none : schedule.startWaiting()
        }
    }

    private let guarded: Mutex<Guarded>
    private let live = LiveObject(.stream)

    init(_ direction: StreamState.Direction) {
        guarded = Mutex(Guarded(state: StreamState(direction)))
    }

    // No queue can still refer to this object: a queue retains its waiting clients.
    deinit { guarded.withLock { $0.schedule.takeAll(of: nil) }.leave() }

    /// Sets the stream whose delegate is called. Must be called once, before anything else.
    func attach(_ stream: Foundation.Stream) {
        let weakStream = WeakStream(stream: stream)
        guarded.withLock { $0.weakStream = weakStream }
    }

    // MARK: - State

    /// Changes the state and enqueues the stream if events are pending then.
    ///
    /// - Parameter deferred: Whether the stream may be served after the callbacks of the descriptors that are
    ///   ready now.
    @discardableResult
    func update<R>(deferred: Bool = false, _ body: (inout StreamState) -> R) -> R {
        let (result, queues) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.startWaiting())
        }
        enqueue(in: queues, deferred: deferred)
        return result
    }

    /// Notes that bytes or space are there, if `look` finds them.
    ///
    /// A client on another thread may read or write meanwhile. It takes the same lock afterwards
    /// (`StreamState.used`), so bytes that it has read are not reported as ready: its next read would wait
    /// for more.
    func noteReady<Found>(_ look: () -> Found, _ isReady: (Found) -> Bool) -> Found {
        update { state in
            let found = look()
            if isReady(found) { state.setReady(true) }
            return found
        }
    }

    func opened(isReady: Bool) {
        let queues = guarded.withLock { guarded in
            guarded.state.opened(isScheduled: !guarded.schedule.isEmpty, isReady: isReady)
            return guarded.startWaiting()
        }
        enqueue(in: queues)
    }

    var state: StreamState { guarded.withLock { $0.state } }
    // These read the state without copying it.
    var status: Foundation.Stream.Status { guarded.withLock { $0.state.status } }
    var mayTransfer: Bool { guarded.withLock { $0.state.mayTransfer } }
    /// True if the stream is open, and bytes or space are there as far as is known.
    var isReady: Bool { guarded.withLock { $0.state.status == .open && $0.state.isReady } }

    private func enqueue(in queues: ClientSchedule.Queues, deferred: Bool = false) {
        if case .dispatch(let queue) = queues { submit(to: queue) }
        // A run that returns after each source serves one stream at a time: there a stream that waits for
        // others gains nothing.
        queues.enqueue(self, deferred: deferred && !queues.returnAfterSource)
    }

    private func submit(to queue: DispatchQueue) {
        DispatchSubmitter.shared.submit { [self] in
            queue.async { [self] in serve(on: queue) }
        }
    }

    // MARK: - Schedule

    /// The modes that the client has scheduled the stream in.
    var modes: [LoopMode] { guarded.withLock { $0.schedule.modes } }

    /// The modes in which a run loop serves what is below the stream: `modes`, or, with a dispatch queue, the
    /// loader's.
    var servingModes: [LoopMode] { guarded.withLock { $0.schedule.servingModes } }

    /// Whether `mode` is one of `servingModes`.
    func isServed(in mode: LoopMode) -> Bool { guarded.withLock { $0.schedule.isServed(in: mode) } }

    /// The calling thread's loop, if the stream's events are delivered there alone.
    var onlyLoopHere: RunLoop? {
        guarded.withLock { guarded in
            guard let loop = guarded.schedule.onlyQueue?.loop, loop.isCurrent else { return nil }
            return loop
        }
    }

    /// True if the stream is in a mode of a loop, or on a dispatch queue.
    var isScheduled: Bool { guarded.withLock { !$0.schedule.isEmpty } }

    func isScheduled(in mode: LoopMode) -> Bool { guarded.withLock { $0.schedule.contains(mode) } }

    /// The dispatch queue on which the delegate is called; nil: a loop calls it.
    var queue: DispatchQueue? { guarded.withLock { $0.schedule.dispatchQueue } }

    /// Adds a mode, and takes the stream off its dispatch queue (rule ST-21).
    ///
    /// - Returns: False if the stream has the mode already, or is closed.
    func schedule(in mode: LoopMode) -> Bool {
        guard guarded.withLock({ !$0.schedule.contains(mode) && $0.state.status != .closed }) else {
            return false
        }
        let shared = SharedQueue.join(mode.loop, mode.mode)
        let queues = guarded.withLock { guarded -> ClientSchedule.Queues? in
            // Another thread may have changed the schedule meanwhile.
            guard !guarded.schedule.contains(mode), guarded.state.status != .closed else { return nil }
            guarded.schedule.insert(shared)
            return guarded.startWaiting()
        }
        guard let queues else {
            shared.leave()
            return false
        }
        enqueue(in: queues)
        return true
    }

    /// - Returns: False if the stream is not in the mode.
    func remove(from mode: LoopMode) -> Bool {
        guard let queue = guarded.withLock({ $0.schedule.remove(mode, of: self) }) else { return false }
        queue.leave()
        return true
    }

    /// Takes the stream off all loops and sets its dispatch queue; nil takes it off its queue only (rule
    /// ST-21).
    ///
    /// - Returns: False if the stream is closed.
    func setQueue(_ queue: DispatchQueue?) -> Bool {
        let (isChanged, left, queues) = guarded.withLock {
            guarded -> (Bool, ClientSchedule.RemovedQueues, ClientSchedule.Queues) in
            guard guarded.state.status != .closed else { return (false, .init(), .none) }
            // The stream has no queue to be taken off: it stays in its loops.
            guard queue != nil || guarded.schedule.dispatchQueue != nil else { return (true, .init(), .none) }
            let left = guarded.schedule.takeAll(of: self)
            guarded.schedule.dispatchQueue = queue
            return (true, left, guarded.startWaiting())
        }
        left.leave()
        enqueue(in: queues)
        return isChanged
    }

    /// Closes the stream: it leaves all loops and has no pending events any more (rule ST-5).
    ///
    /// - Returns: False if there was nothing to close.
    func close() -> Bool {
        let left = guarded.withLock { guarded -> ClientSchedule.RemovedQueues? in
            guarded.state.close() ? guarded.schedule.takeAll(of: self) : nil
        }
        left?.leave()
        return left != nil
    }

    /// Empties the schedule; called in the stream's deinit.
    func invalidate() {
        guarded.withLock { $0.schedule.takeAll(of: self) }.leave()
    }

    // MARK: - Delivery

    func serve(by queue: SharedQueue) -> Bool {
        let delivery = guarded.withLock { guarded -> Delivery? in
            guard guarded.mayDeliver else {
                // The stream stays in the queue of the loop that is calling the delegate: a nested run may be
                // waiting there.
                guarded.schedule.endWaiting(onlyIn: queue)
                return nil
            }
            // A queue that the stream has left meanwhile must not serve it.
            guard guarded.schedule.endWaiting(servedBy: queue, self) else { return nil }
            return guarded.beginDelivery()
        }
        return delivery.map { deliver($0, on: queue.loop) } != nil
    }

    private func serve(on queue: DispatchQueue) {
        let delivery = guarded.withLock { guarded -> Delivery? in
            // A queue that the stream has left meanwhile must not serve it.
            guard guarded.schedule.endWaiting(servedOn: queue), guarded.mayDeliver else { return nil }
            return guarded.beginDelivery()
        }
        if let delivery { deliver(delivery, on: nil) }
    }

    /// Calls the delegate for each event that was pending at the beginning and still is.
    ///
    /// - Parameter loop: The loop that serves the stream, for traces; nil where a dispatch queue does.
    private func deliver(_ begun: Delivery, on loop: RunLoop?) {
        var delivery = begun
        let stream = delivery.stream
        while true {
            let event = delivery.event
            RunLoop.tracingDelegateCall(
                event.nameInTraces, of: stream, label: nameInTraces(of: stream), on: loop
            ) { stream.delegate?.stream(stream, handle: event) }
            let (isOver, queues) = guarded.withLock { guarded -> (Bool, ClientSchedule.Queues) in
                if guarded.takeNextEvent(&delivery) { return (false, .none) }
                guarded.depth -= 1
                return (true, guarded.startWaiting())
            }
            if isOver { return enqueue(in: queues) }
        }
    }
}

/// The delivery of the events that are pending at one time.
///
/// `@unchecked Sendable`: it is passed from under the lock of `beginDelivery` to the thread that called it,
/// and no other thread gets one until that thread has finished; see `StreamCore.WeakStream`.
private struct Delivery: @unchecked Sendable {
    /// Retained because the handler may release the stream.
    let stream: Foundation.Stream
    /// The version of the schedule when the delivery began.
    let version: UInt32
    /// The event to deliver next; `rest` holds the others that were pending.
    var event: Foundation.Stream.Event = []
    var rest: Foundation.Stream.Event
}

extension StreamCore.Guarded {
    /// False if another thread is calling the delegate, which checks again when it is done.
    fileprivate var mayDeliver: Bool { depth == 0 || pthread_equal(deliverer, pthread_self()) != 0 }

    /// The caller has found that it may deliver.
    ///
    /// - Returns: Nil if no event is pending.
    fileprivate mutating func beginDelivery() -> Delivery? {
        guard !state.owed.isEmpty, let stream = weakStream.stream else { return nil }
        var delivery = Delivery(stream: stream, version: schedule.version, rest: state.owed)
        // An event is pending, so `takeNextEvent` finds one. (From here on the stream must not be released by
        // this function: its deinit would take the lock that is held here.)
        _ = takeNextEvent(&delivery)
        deliverer = pthread_self()
        depth += 1
        return delivery
    }

    /// Takes the next event, in ascending order of the event bits (rule ST-11).
    ///
    /// - Returns: False if there is none.
    fileprivate mutating func takeNextEvent(_ delivery: inout Delivery) -> Bool {
        // A change of the schedule by a handler applies before the next event.
        while schedule.version == delivery.version, delivery.rest != [] {
            let bits = delivery.rest.rawValue
            delivery.event = Foundation.Stream.Event(rawValue: bits & (~bits &+ 1))
            delivery.rest.remove(delivery.event)
            if state.take(delivery.event) { return true }
        }
        return false
    }
}

// MARK: - Names

/// The name of a stream in traces: the label that the client gave it, or the one made when it was first
/// traced.
private indirect enum StreamName {
    case label(String)
    case made(String)
}

extension StreamCore {
    private static let tracedInputs = Atomic(0), tracedOutputs = Atomic(0)

    var label: String? {
        get {
            let name = guarded.withLock { $0.name }
            return if case .label(let label) = name { label } else { nil }
        }
        set {
            let name = newValue.map(StreamName.label)
            guarded.withLock { $0.name = name }
        }
    }

    /// The label; without one, a name with a number that tells streams apart, and with the peer if there is
    /// one.
    private func nameInTraces(of stream: Foundation.Stream) -> String {
        switch guarded.withLock({ $0.name }) {
        case .label(let name), .made(let name): return name
        case nil: break
        }
        let isInput = guarded.withLock { $0.state.direction } == .input
        let number =
            isInput
            ? Self.tracedInputs.wrappingAdd(1, ordering: .relaxed).newValue
            : Self.tracedOutputs.wrappingAdd(1, ordering: .relaxed).newValue
        let peer = (stream as? any StreamWithPeer)?.peerName
        let name = "\(isInput ? "input" : "output") stream \(number)" + (peer.map { ", " + $0 } ?? "")
        guarded.withLock { if $0.name == nil { $0.name = .made(name) } }
        return name
    }
}

extension Foundation.Stream.Event {
    fileprivate var nameInTraces: String {
        switch self {
        case .openCompleted: "openCompleted"
        case .hasBytesAvailable: "hasBytesAvailable"
        case .hasSpaceAvailable: "hasSpaceAvailable"
        case .errorOccurred: "errorOccurred"
        case .endEncountered: "endEncountered"
        default: "event \(rawValue)"
        }
    }
}
