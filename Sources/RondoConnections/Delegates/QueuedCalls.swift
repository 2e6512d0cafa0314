internal import RondoCore
internal import RondoMutex

/// The calls of a load that wait for the delegate queue. They are made in order and one at a time, even if
/// the queue runs several operations at once (rule UC-11): each is submitted when the one before it has
/// returned.
package final class QueuedCalls: Sendable {
    /// Bytes that may wait for the delegate; while there are more, the socket is not read.
    static let maximumWaitingBytes = 1024 * 1024
    /// The bytes that each call counts beside those that it retains, so that a server cannot make any number
    /// of small calls wait: pieces of one byte, or empty parts of a multipart.
    static let bytesPerCall = 1024

    package enum Adding {
        /// `mayRead`: whether more may be read from the socket.
        case queued(mayRead: Bool)
        /// There is no queue, and no call waits for one: the caller makes the call itself.
        case notQueued
    }

    /// A call that waits for the queue. `@unchecked Sendable`: it is handed in by the loop's thread and made
    /// by one operation.
    fileprivate struct Waiting: @unchecked Sendable {
        let call: DelegateCall
    }

    private struct State: ~Copyable {
        var waiting = FIFO<Waiting>()
        var bytes = 0
        var isDraining = false
        /// Whether no call is made at present.
        var isSuspended = false
        /// Submits an operation that makes the first waiting call; not nil while there are waiting calls.
        var drain: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameters:
    ///   - queue: The delegate queue; nil if there is none, or none any more. Waiting calls are then still
    ///     made by the old queue, and so are later calls, which would otherwise overtake them.
    ///   - mayBeDeferred: See `DelegateQueue.submit`; the same for all calls.
    ///   - make: Makes a call, on the queue.
    package func add(
        _ call: DelegateCall, to queue: DelegateQueue?, mayBeDeferred: Bool = true,
        make: @escaping @Sendable (DelegateCall) -> Void
    ) -> Adding {
        let waiting = Waiting(call: call)
        let (isTaken, drain, mayRead) = state.withLock { state -> (Bool, (@Sendable () -> Void)?, Bool) in
            guard queue != nil || state.isDraining else { return (false, nil, true) }
            if let queue, state.drain == nil {
                state.drain = { [self] in
                    queue.submit(mayBeDeferred: mayBeDeferred) { self.makeFirst(make) }
                }
            }
            if let joined = state.waiting.last?.call.joined(with: waiting.call) {
                // Progress of an upload, which reading less would not slow down.
                state.waiting.replaceLast(by: Waiting(call: joined))
            } else {
                state.waiting.append(waiting)
                state.bytes += Self.bytesPerCall + waiting.call.size
            }
            let mustDrain = !state.isDraining && !state.isSuspended
            if mustDrain { state.isDraining = true }
            return (true, mustDrain ? state.drain : nil, state.bytes <= Self.maximumWaitingBytes)
        }
        guard isTaken else { return .notQueued }
        drain?()
        return .queued(mayRead: mayRead)
    }

    /// Stops making calls, or continues. Meanwhile calls wait. Any thread may call it.
    package func setSuspended(_ isSuspended: Bool) {
        let drain = state.withLock { state -> (@Sendable () -> Void)? in
            state.isSuspended = isSuspended
            guard !isSuspended, !state.isDraining, !state.waiting.isEmpty else { return nil }
            state.isDraining = true
            return state.drain
        }
        drain?()
    }

    /// Drops the calls that wait.
    func removeAll() { withExtendedLifetime(takeAll()) {} }

    /// Removed calls, and the closure that would have made them: releasing them may run code of the program.
    struct Removed {
        fileprivate let waiting: FIFO<Waiting>
        fileprivate let drain: (@Sendable () -> Void)?

        /// The partial file of a download whose end is among them.
        var partial: PartialDownload? { waiting.last?.call.partial }
    }

    /// - Returns: The calls that waited, which the caller releases with no lock held.
    func takeAll() -> Removed {
        state.withLock { state in
            defer {
                state.waiting = FIFO()
                state.bytes = 0
                // A call that is being made releases it at its end.
                if !state.isDraining { state.drain = nil }
            }
            return Removed(waiting: state.waiting, drain: state.drain)
        }
    }

    /// Makes the first call, in an operation of the queue.
    private func makeFirst(_ make: (DelegateCall) -> Void) {
        let first = state.withLock { state -> Waiting? in
            guard !state.isSuspended, let first = state.waiting.popFirst() else { return nil }
            state.bytes -= Self.bytesPerCall + first.call.size
            return first
        }
        if let first { make(first.call) }
        let (goesOn, drain) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            state.isDraining = !state.isSuspended && !state.waiting.isEmpty
            // Returned, so that the closure and what it retains are released without the lock.
            return (state.isDraining, state.waiting.isEmpty ? state.drain.take() : state.drain)
        }
        if goesOn { drain?() }
    }

    /// Whether a call waits that has not begun.
    package var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    var mayRead: Bool { state.withLock { $0.bytes <= Self.maximumWaitingBytes / 2 } }
}
