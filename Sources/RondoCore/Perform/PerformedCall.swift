internal import RondoMutex

/// A closure on its way to a loop, for a caller that waits for its result.
///
/// The closure is run once, or dropped when the loop's thread ends. The queued block retains a drop
/// guard, whose `deinit` gives the caller an error if the block was dropped.
final class PerformedCall<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, any Error>

    private struct State {
        var outcome: Outcome?
        var whenDone: (@Sendable (Outcome) -> Void)?
    }

    private let state = Mutex(State())

    /// Calls `body` once with the outcome; at once if the outcome is already known.
    func whenDone(_ body: @escaping @Sendable (Outcome) -> Void) {
        let outcome = state.withLock { state in
            if state.outcome == nil { state.whenDone = body }
            return state.outcome
        }
        if let outcome { body(outcome) }
    }

    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// Sets the outcome. Only the first call has an effect.
    func end(_ outcome: Outcome) {
        let whenDone = state.withLock { state -> (@Sendable (Outcome) -> Void)? in
            guard state.outcome == nil else { return nil }
            state.outcome = outcome
            return state.whenDone.take()
        }
        whenDone?(outcome)
    }

    /// A block that calls `body` and ends this call with its result.
    func block(_ body: @escaping () throws -> Value) -> PerformedBlock {
        let dropGuard = DropGuard(call: self)
        return PerformedBlock { dropGuard.call.end(Outcome { try body() }) }
    }

    private final class DropGuard: Sendable {
        let call: PerformedCall

        init(call: PerformedCall) { self.call = call }

        deinit { call.end(.failure(RunLoop.PerformError.threadEnded)) }
    }
}
