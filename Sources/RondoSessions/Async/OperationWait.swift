internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Lets a Swift task wait for the value that an operation's completion handler gets, or for the task's
/// cancellation.
enum OperationWait<Value: Sendable> {
    typealias Outcome = Result<Value, any Error>

    /// Begins an operation and waits for its outcome. If the handler is released without a call, the
    /// operation was cancelled, or the thread of the session's run loop has ended: the function fails with
    /// `URLError.cancelled`.
    ///
    /// The operation begins before the function first suspends, and the function stays on the caller's actor,
    /// so that the operations of an actor's tasks begin in the order of those tasks (rules WS-8 and US-89).
    ///
    /// - Parameters:
    ///   - begin: Begins the operation with the given completion handler, and returns the operation's
    ///     number.
    ///   - cancel: Cancels the operation of that number. Returns false if the handler was called, or will be
    ///     called or released.
    nonisolated(nonsending) static func value(
        begin: (@escaping @Sendable (Outcome) -> Void) -> Int, cancel: @escaping @Sendable (Int) -> Bool
    ) async throws -> Value {
        guard !Task.isCancelled else { throw Self.cancellation }
        let outcome = SingleOutcome<Outcome>()
        let identifier = begin(outcome.handler())
        let first = await withTaskCancellationHandler {
            await outcome.wait()
        } onCancel: {
            if cancel(identifier) { outcome.end(.failure(Self.cancellation)) }
        }
        guard let first else { throw Task.isCancelled ? Self.cancellation : URLErrors.loopHasEnded(url: nil) }
        return try first.get()
    }

    private static var cancellation: URLError {
        URLErrors.error(.cancelled, "The Swift task was cancelled.", url: nil)
    }
}
