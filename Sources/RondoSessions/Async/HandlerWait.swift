/// Lets an async function wait for the value that a completion handler gets.
enum HandlerWait {
    /// - Parameters:
    ///   - begin: Gets the completion handler, passes it on and keeps no reference to it.
    ///   - fallback: The value if the handler is released without a call.
    nonisolated(nonsending) static func value<Value: Sendable>(
        _ begin: (@escaping @Sendable (Value) -> Void) -> Void, or fallback: Value
    ) async -> Value {
        let outcome = SingleOutcome<Value>()
        return await outcome.wait { begin(outcome.handler()) } ?? fallback
    }
}
