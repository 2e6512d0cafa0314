internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// Lets a Swift task wait for the value that an operation's completion handler gets, or for the task's cancellation.
enum OperationWait<Value: Sendable> {
    typealias Outcome = Result<Value, any Error>

    private struct State {
        /// The number of the operation; nil before it was begun.
        var identifier: Int?
        var isCancelled = false
    }

    /// Begins an operation and waits for its outcome. If the handler is released without a call, the operation
    /// was cancelled, or the thread of the session's run loop has ended: the function fails with
    /// `URLError.cancelled`.
    ///
    /// - Parameters:
    ///   - begin: Begins the operation with the given completion handler, and returns the operation's
    ///     number.
    ///   - cancel: Cancels the operation of that number. Returns false if the handler was called, or will be called or
    ///     released.
    static func value(
        begin: (@escaping @Sendable (Outcome) -> Void) -> Int, cancel: @escaping @Sendable (Int) -> Bool
    ) async throws -> Value {
        let outcome = SingleOutcome<Outcome>()
        let state = Mutex(State())
        let first = await withTaskCancellationHandler { () -> Outcome? in
            guard !Task.isCancelled else { return .failure(Self.cancellation) }
            let identifier = begin(outcome.handler())
            let isCancelled = state.withLock { state in
                state.identifier = identifier
                return state.isCancelled
            }
            if isCancelled, cancel(identifier) { outcome.end(.failure(Self.cancellation)) }
            return await outcome.wait()
        } onCancel: {
            let identifier = state.withLock { state in
                state.isCancelled = true
                return state.identifier
            }
            if let identifier, cancel(identifier) { outcome.end(.failure(Self.cancellation)) }
        }
        guard let first else { throw Task.isCancelled ? Self.cancellation : URLErrors.loopHasEnded(url: nil) }
        return try first.get()
    }

    private static var cancellation: URLError {
        URLErrors.error(.cancelled, "The Swift task was cancelled.", url: nil)
    }
}
