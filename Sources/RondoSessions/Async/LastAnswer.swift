internal import RondoMutex

/// Resumes an async function with the value that a completion handler gets; with another value if the handler is
/// released without a call, as it is when the thread of the session's run loop has ended.
final class LastAnswer<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, Never>?>
    private let fallback: Value

    private init(_ continuation: CheckedContinuation<Value, Never>, or fallback: Value) {
        self.continuation = Mutex(continuation)
        self.fallback = fallback
    }

    deinit { give(fallback) }

    private func give(_ value: Value) {
        continuation.withLock { $0.take() }?.resume(returning: value)
    }

    /// Waits for the value.
    ///
    /// - Parameter begin: Gets the completion handler, passes it on and keeps no reference to it.
    nonisolated(nonsending) static func of(
        _ begin: (@escaping @Sendable (Value) -> Void) -> Void, or fallback: Value
    ) async -> Value {
        await withCheckedContinuation { continuation in
            let answer = LastAnswer(continuation, or: fallback)
            begin { answer.give($0) }
        }
    }
}
