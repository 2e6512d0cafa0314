// What every stream shares: its state, where it is scheduled, and how its delegate is told.
//
// A stream is in the loops and modes that the client has scheduled it in and nowhere else. Whatever makes it
// ready (a socket in some loop's pass, the other end of a bound pair on another thread, a read) only changes
// the state, and enqueues the stream in the queues of those modes. The delegate is called only when one of them
// serves the stream, and so in the right mode, on the right thread and never inside a call of the client's,
// wherever the bytes came from. A stream that is in several modes is enqueued in all of them; the first one that
// serves it delivers the events that are owed, and none is left for the others (rule ST-18). A stream with a dispatch queue
// is served there (rule ST-21).
//
// Threads: the state is behind the Mutex. Delegates are called with it let go, and what was owed is asked
// again after every call, because a handler may close, unschedule or release its stream (rule ST-19).

internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A stream that knows its backend.
protocol StreamWithPeer: Foundation.Stream {
    /// Host and port, as traces name a stream by them; nil where there is no peer, or it has no name.
    var peerName: String? { get }
}

/// The part that all streams share: keeps a stream's state and schedule, and delivers its events to the delegate.
final class StreamCore: SharedQueueClient {
    /// A weak reference to the stream.
    ///
    /// `@unchecked Sendable`: only followed by `beginDelivery`, under the lock, which lets one thread at a
    /// time deliver; by rule ST-20 that is the thread which uses the stream.
    fileprivate struct Way: @unchecked Sendable {
        weak var stream: Foundation.Stream?
    }

    fileprivate struct Guarded: ~Copyable {
        var state: StreamState
        /// How deep the delegate is being called just now, because of nested runs; here it fills a gap.
        var depth: UInt16 = 0
        var way = Way()
        var schedule = StreamSchedule()
        /// Boxed: most streams have none.
        var name: StreamName?
        /// The thread that calls the delegate, while `depth` is not 0.
        var deliverer = pthread_t()

        /// Has the stream wait for its delivery, if there is something to tell.
        ///
        /// - Returns: The queues in which it has to be enqueued.
        mutating func startWaiting() -> StreamSchedule.Queues {
            state.owed.isEmpty ? .none : schedule.startWaiting()
        }
    }

    private let guarded: Mutex<Guarded>
    private let live = LiveObject(.stream)

    init(_ direction: StreamState.Direction) {
        guarded = Mutex(Guarded(state: StreamState(direction)))
    }

    // A stream that waits in a queue is retained by it.
    deinit { guarded.withLock { $0.schedule.takeAll(of: nil) }.leave() }

    /// The stream whose delegate is told. To be called once, before anything else.
    func attach(_ stream: Foundation.Stream) {
        let way = Way(stream: stream)
        guarded.withLock { $0.way = way }
    }

    // MARK: - State

    /// Changes the state and sees to it that what it owes then is delivered.
    @discardableResult
    func update<R>(_ body: (inout StreamState) -> R) -> R {
        let (result, queues) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.startWaiting())
        }
        enqueue(in: queues)
        return result
    }

    /// Notes that bytes or space are there, if `look` finds them.
    ///
    /// A client on another thread may read or write meanwhile. It notes that afterwards (`StreamState.used`), and by the lock
    /// after this: so what it has taken is never noted as being there, where its next read would wait for more.
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
    // Of the state, without a copy of it.
    var status: Foundation.Stream.Status { guarded.withLock { $0.state.status } }
    var mayTransfer: Bool { guarded.withLock { $0.state.mayTransfer } }
    /// It is open, and bytes or space are there as far as is known.
    var isReady: Bool { guarded.withLock { $0.state.status == .open && $0.state.isReady } }

    private func enqueue(in queues: StreamSchedule.Queues) {
        if case .dispatch(let queue) = queues { submit(to: queue) }
        queues.enqueue(self)
    }

    private func submit(to queue: DispatchQueue) {
        let work: @Sendable () -> Void = { [self] in serve(on: queue) }
        // The main queue needs no thread.
        if queue === DispatchQueue.main { return queue.async(execute: work) }
        DispatchSubmitter.shared.submit { queue.async(execute: work) }
    }

    // MARK: - Schedule

    /// Where the client has scheduled the stream.
    var modes: [ScheduledMode] { guarded.withLock { $0.schedule.modes } }

    /// The calling thread's loop, if the stream is told of its events there alone.
    var onlyLoopHere: RunLoop? {
        guarded.withLock { guarded in
            guard let loop = guarded.schedule.onlyQueue?.loop, loop.isCurrent else { return nil }
            return loop
        }
    }

    /// In a mode of a loop, or on a queue.
    var isScheduled: Bool { guarded.withLock { !$0.schedule.isEmpty } }

    func isScheduled(in mode: ScheduledMode) -> Bool { guarded.withLock { $0.schedule.contains(mode) } }

    /// The dispatch queue on which the delegate is called; nil: a loop calls it.
    var queue: DispatchQueue? { guarded.withLock { $0.schedule.dispatchQueue } }

    /// Adds a mode, and takes the stream off its dispatch queue (rule ST-21).
    ///
    /// - Returns: False: it was there already, or the stream is closed.
    func schedule(in mode: ScheduledMode) -> Bool {
        guard guarded.withLock({ !$0.schedule.contains(mode) && $0.state.status != .closed }) else {
            return false
        }
        let shared = SharedQueue.join(mode.loop, mode.mode)
        let queues = guarded.withLock { guarded -> StreamSchedule.Queues? in
            // Another thread may have been quicker.
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

    /// False: it was not there.
    func remove(from mode: ScheduledMode) -> Bool {
        guard let queue = guarded.withLock({ $0.schedule.remove(mode, of: self) }) else { return false }
        queue.leave()
        return true
    }

    /// Takes the stream off all loops, and gives it to a queue or, with nil, off that too (rule ST-21).
    ///
    /// - Returns: False: the stream is closed.
    func setQueue(_ queue: DispatchQueue?) -> Bool {
        let (isChanged, left, queues) = guarded.withLock {
            guarded -> (Bool, StreamSchedule.Left, StreamSchedule.Queues) in
            guard guarded.state.status != .closed else { return (false, .init(), .none) }
            // Without a queue there is nothing to take off: the loops stay.
            guard queue != nil || guarded.schedule.dispatchQueue != nil else { return (true, .init(), .none) }
            let left = guarded.schedule.takeAll(of: self)
            guarded.schedule.dispatchQueue = queue
            return (true, left, guarded.startWaiting())
        }
        left.leave()
        enqueue(in: queues)
        return isChanged
    }

    /// The client closes: the stream leaves all loops and owes nothing any more (rule ST-5).
    ///
    /// - Returns: False: there was nothing to close.
    func close() -> Bool {
        let left = guarded.withLock { guarded -> StreamSchedule.Left? in
            guarded.state.close() ? guarded.schedule.takeAll(of: self) : nil
        }
        left?.leave()
        return left != nil
    }

    /// The stream is gone.
    func invalidate() {
        guarded.withLock { $0.schedule.takeAll(of: self) }.leave()
    }

    // MARK: - Delivery

    func serve(by queue: SharedQueue) -> Bool {
        let delivery = guarded.withLock { guarded -> Delivery? in
            // A queue that was left meanwhile serves nothing.
            guard guarded.schedule.endWaiting(servedBy: queue, self) else { return nil }
            return guarded.beginDelivery()
        }
        return delivery.map { deliver($0, on: queue.loop) } != nil
    }

    private func serve(on queue: DispatchQueue) {
        let delivery = guarded.withLock { guarded -> Delivery? in
            // A queue that was left meanwhile serves nothing.
            guarded.schedule.endWaiting(servedOn: queue) ? guarded.beginDelivery() : nil
        }
        if let delivery { deliver(delivery, on: nil) }
    }

    /// Tells the delegate, until nothing more of what was owed at the beginning is.
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
            let (isOver, queues) = guarded.withLock { guarded -> (Bool, StreamSchedule.Queues) in
                if guarded.goesOn(&delivery) { return (false, .none) }
                guarded.depth -= 1
                return (true, guarded.startWaiting())
            }
            if isOver { return enqueue(in: queues) }
        }
    }
}

/// The delivery of the events that a stream owes at one time.
///
/// `@unchecked Sendable`: it leaves the lock of `beginDelivery` for the thread that has called it, and no other thread
/// gets one until that one has delivered; see `StreamCore.Way`.
private struct Delivery: @unchecked Sendable {
    /// Retained while the handler is called, which may release it.
    let stream: Foundation.Stream
    /// Of the schedule.
    let version: UInt32
    /// The event that is told next, and those that were owed besides.
    var event: Foundation.Stream.Event = []
    var rest: Foundation.Stream.Event
}

extension StreamCore.Guarded {
    /// - Returns: Nil: there is nothing to tell, or another thread is calling the delegate; it looks again when it is done.
    fileprivate mutating func beginDelivery() -> Delivery? {
        let thread = pthread_self()
        guard depth == 0 || pthread_equal(deliverer, thread) != 0, !state.owed.isEmpty,
            let stream = way.stream
        else {
            return nil
        }
        var delivery = Delivery(stream: stream, version: schedule.version, rest: state.owed)
        // Something is owed, so there is a first. (From here on the stream must not be let go of: it would be released under
        // the lock that it takes when it goes.)
        _ = goesOn(&delivery)
        deliverer = thread
        depth += 1
        return delivery
    }

    /// Takes the next event, in ascending order of their bits (rule ST-11).
    ///
    /// - Returns: False: there is none.
    fileprivate mutating func goesOn(_ delivery: inout Delivery) -> Bool {
        // A handler that has changed the schedule is followed before the next event, not after it.
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

/// What traces call a stream: the label that the client gave it, or what it was called when it was first
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

    /// Without a label a number tells streams apart, and the peer, where there is one, says which it is.
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
