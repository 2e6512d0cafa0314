internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// Lets a Swift task wait for the value that a completion handler gets, or for the task's cancellation. The
/// wait ends exactly once.
final class AsyncTurn<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, any Error>

    private struct State {
        var continuation: CheckedContinuation<Value, any Error>?
        var outcome: Outcome?
        /// The number of the operation; nil before it was begun.
        var identifier: Int?
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// The completion handler. If it is released without a call, the operation was cancelled, or the thread of
    /// the session's run loop has ended: the waiting task fails with `URLError.cancelled`.
    private final class Handler: Sendable {
        private let turn: AsyncTurn
        init(_ turn: AsyncTurn) { self.turn = turn }
        deinit { turn.endWithoutCall() }
        func call(_ outcome: Outcome) { turn.end(outcome) }
    }

    /// Begins an operation and waits for its outcome.
    ///
    /// - Parameters:
    ///   - begin: Begins the operation with the given completion handler, and returns the operation's
    ///     number.
    ///   - cancel: Cancels the operation of that number. Returns false if the handler was called, or will be called or
    ///     released.
    func value(
        begin: (@escaping @Sendable (Outcome) -> Void) -> Int, cancel: @escaping @Sendable (Int) -> Bool
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            guard !Task.isCancelled else { throw Self.cancellation }
            let identifier = begin(completion())
            let isCancelled = state.withLock { state in
                state.identifier = identifier
                return state.isCancelled
            }
            if isCancelled, cancel(identifier) { end(.failure(Self.cancellation)) }
            return try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Outcome? in
                    if state.outcome == nil { state.continuation = continuation }
                    return state.outcome
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let identifier = state.withLock { state in
                state.isCancelled = true
                return state.identifier
            }
            if let identifier, cancel(identifier) { end(.failure(Self.cancellation)) }
        }
    }

    private func endWithoutCall() {
        let isCancelled = state.withLock { $0.isCancelled }
        end(.failure(isCancelled ? Self.cancellation : URLErrors.loopHasEnded(url: nil)))
    }

    /// In a function of its own, so that no variable of `value` keeps the handler alive while it waits.
    private func completion() -> @Sendable (Outcome) -> Void {
        let handler = Handler(self)
        return { handler.call($0) }
    }

    private func end(_ outcome: Outcome) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            guard state.outcome == nil else { return nil }
            state.outcome = outcome
            return state.continuation.take()
        }
        continuation?.resume(with: outcome)
    }

    private static var cancellation: URLError {
        URLErrors.error(.cancelled, "The Swift task was cancelled.", url: nil)
    }
}
