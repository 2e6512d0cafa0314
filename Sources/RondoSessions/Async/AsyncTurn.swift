internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// One wait of a Swift task for what a handler is called with, or until it is cancelled; it ends exactly once.
final class AsyncTurn<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, any Error>

    private struct State {
        var continuation: CheckedContinuation<Value, any Error>?
        var outcome: Outcome?
        /// Of what was begun; nil: it was not yet.
        var identifier: Int?
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// Resumes the waiting task when the handler is let go without having been called.
    private final class Handler: Sendable {
        private let turn: AsyncTurn
        init(_ turn: AsyncTurn) { self.turn = turn }
        deinit { turn.end(.failure(AsyncTurn.cancellation)) }
        func call(_ outcome: Outcome) { turn.end(outcome) }
    }

    /// - Parameters:
    ///   - begin: Hands a handler over, and returns the number by which it can be taken back.
    ///   - cancel: Takes it back; false: it is too late for that.
    func value(
        begin: (@escaping @Sendable (Outcome) -> Void) -> Int, cancel: @escaping @Sendable (Int) -> Bool
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            guard !Task.isCancelled else { throw Self.cancellation }
            let handler = Handler(self)
            let identifier = begin { handler.call($0) }
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
