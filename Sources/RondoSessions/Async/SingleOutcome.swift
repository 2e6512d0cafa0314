internal import RondoMutex

/// The outcome that a completion handler gets, for the one async function that waits for it. The first
/// outcome counts.
///
/// It is nil if the handler is released without a call, as it is when the thread of the session's run loop
/// has ended. No continuation is resumed while the lock is held (rule US-82).
final class SingleOutcome<Value: Sendable>: Sendable {
    private enum State {
        /// The function does not wait yet, and there is no outcome.
        case early
        case waiting(CheckedContinuation<Value?, Never>)
        /// The outcome arrived before the function began to wait.
        case kept(Value?)
        case over
    }

    /// The sender of the outcome. Only the completion handler may own it.
    final class Sender: Sendable {
        private let outcome: SingleOutcome

        fileprivate init(of outcome: SingleOutcome) { self.outcome = outcome }

        deinit { outcome.end(nil) }

        /// - Returns: False if the function has its outcome already.
        @discardableResult
        func send(_ value: Value) -> Bool { outcome.end(value) }
    }

    private let state = Mutex(State.early)

    func sender() -> Sender { Sender(of: self) }

    /// A completion handler that sends what it gets. The function must keep no reference to it.
    func handler() -> @Sendable (Value) -> Void {
        let sender = sender()
        return { sender.send($0) }
    }

    /// - Returns: False if there was an outcome already.
    @discardableResult
    func end(_ value: Value?) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value?, Never>?) in
            switch state {
            case .early:
                state = .kept(value)
                return (true, nil)
            case .waiting(let continuation):
                state = .over
                return (true, continuation)
            case .kept, .over: return (false, nil)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// Waits for the outcome. Calls `begin` once it waits, unless there is an outcome already.
    nonisolated(nonsending) func wait(onceWaiting begin: () -> Void = {}) async -> Value? {
        await withCheckedContinuation { continuation in
            let earlier = state.withLock { state -> State in
                let earlier = state
                if case .kept = earlier { state = .over } else { state = .waiting(continuation) }
                return earlier
            }
            if case .kept(let value) = earlier { continuation.resume(returning: value) } else { begin() }
        }
    }
}
