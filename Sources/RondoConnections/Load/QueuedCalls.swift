internal import RondoCore
internal import RondoMutex

/// Calls that wait for the delegate queue: made in order and one at a time, however wide the queue is
/// (rule UC-11). Each is submitted when the one before it has returned.
package final class QueuedCalls: Sendable {
    /// Bytes that may wait for the delegate; while there are more, the socket is not read.
    static let maximumWaitingBytes = 1024 * 1024

    package enum Adding {
        /// `mayRead`: whether more may be read from the socket.
        case queued(mayRead: Bool)
        /// There is no queue, and nothing that waits for one: the caller makes the call itself.
        case notQueued
    }

    /// `@unchecked Sendable`: a call is handed in by the loop's thread and made by one operation.
    private struct Waiting: @unchecked Sendable {
        let call: DelegateCall
    }

    private struct State: ~Copyable {
        var waiting: [Waiting] = []
        var bytes = 0
        var isDraining = false
        /// No call is made at present.
        var isSuspended = false
        /// Makes the queue make the first call that waits, and then the next; kept while there are any.
        var drain: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameters:
    ///   - queue: Nil if the delegate has none (any more). Calls that wait are then still made by the old
    ///     one, and so are later ones, which would otherwise overtake them.
    ///   - make: Makes a call, on the queue.
    package func add(
        _ call: DelegateCall, to queue: DelegateQueue?, make: @escaping @Sendable (DelegateCall) -> Void
    ) -> Adding {
        let waiting = Waiting(call: call)
        let (isTaken, drain, mayRead) = state.withLock { state -> (Bool, (@Sendable () -> Void)?, Bool) in
            guard queue != nil || state.isDraining else { return (false, nil, true) }
            if let queue, state.drain == nil {
                state.drain = { [self] in queue.submit { self.makeFirst(make) } }
            }
            state.waiting.append(waiting)
            state.bytes += waiting.call.size
            let mustDrain = !state.isDraining && !state.isSuspended
            if mustDrain { state.isDraining = true }
            return (true, mustDrain ? state.drain : nil, state.bytes <= Self.maximumWaitingBytes)
        }
        guard isTaken else { return .notQueued }
        drain?()
        return .queued(mayRead: mayRead)
    }

    /// Stops making calls, or continues; calls that come meanwhile wait. Any thread may call it.
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
    func removeAll() {
        let dropped = state.withLock { state in
            defer {
                state.waiting = []
                state.bytes = 0
                // A call under way releases it at its end.
                if !state.isDraining { state.drain = nil }
            }
            return (state.waiting, state.drain)
        }
        withExtendedLifetime(dropped) {}
    }

    /// Makes the first call, in an operation of the queue.
    private func makeFirst(_ make: (DelegateCall) -> Void) {
        let first = state.withLock { state -> Waiting? in
            guard !state.isSuspended, !state.waiting.isEmpty else { return nil }
            let first = state.waiting.removeFirst()
            state.bytes -= first.call.size
            return first
        }
        if let first { make(first.call) }
        let (goesOn, drain) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            state.isDraining = !state.isSuspended && !state.waiting.isEmpty
            // Released without the lock, with all that it holds.
            return (state.isDraining, state.waiting.isEmpty ? state.drain.take() : state.drain)
        }
        if goesOn { drain?() }
    }

    var mayRead: Bool { state.withLock { $0.bytes <= Self.maximumWaitingBytes / 2 } }
}
