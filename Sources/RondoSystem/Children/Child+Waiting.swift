public import RondoCore

extension Child {
    /// Waits for the end of the child. It blocks the calling thread, and callbacks of that thread's loop wait
    /// too (rule CH-23).
    @available(*, noasync, message: "It blocks the thread. In a task write `await child.status`.")
    public func wait() -> Status { handle.wait() }

    /// The status of the child after its end; waits for it without blocking a thread. The callbacks of the
    /// child are called as well.
    public var status: Status {
        get async {
            events.withLock { $0.isAwaited = true }
            handle.reaper.watch(handle)
            return await withCheckedContinuation { continuation in
                handle.whenEnded { continuation.resume(returning: $0) }
            }
        }
    }

    /// The form in which `run` collects an output.
    public struct Collecting<Value: Sendable>: Sendable {
        let limit: Int
        let make: @Sendable (Data) throws(ChildError) -> Value
    }

    /// Runs a program to its end, and collects its standard output.
    ///
    /// Cancelling the Swift task stops the child (rule CH-17), and so does the time limit.
    /// - Parameters:
    ///   - timeLimit: Seconds from the start; nil means no limit.
    ///   - output: The form and the largest size of the output: `.string(limit:)` or `.data(limit:)`.
    /// - Throws: `ChildError` if the program could not be started, its output is too large or not UTF-8, or
    ///   the time limit was reached; `CancellationError` if the Swift task was cancelled.
    public static func run<Value: Sendable>(
        _ program: String, _ arguments: [String] = [], environment: Environment = .inherited,
        workingDirectory: String? = nil, standardInput: Input = .none, standardError: Output = .inherited,
        timeLimit: TimeInterval? = nil, output: Collecting<Value>
    ) async throws -> (status: Status, output: Value) {
        let child = try spawn(
            program, arguments, environment: environment, workingDirectory: workingDirectory,
            standardInput: standardInput, standardOutput: .collected(limit: output.limit),
            standardError: standardError)
        if let timeLimit { child.stop(after: timeLimit) }
        let status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                child.onCompletion = { _, status in continuation.resume(returning: status) }
                child.schedule(in: .loader, forMode: .default)
            }
        } onCancel: {
            child.stop()
        }
        try Task.checkCancellation()
        if let error = child.error { throw error }
        if let timeLimit, child.wasStopped {
            throw ChildError(.timeLimit, path: program, "\(program) was stopped after \(timeLimit) s")
        }
        return (status, try output.make(child.collectedOutput))
    }
}

extension Child.Collecting where Value == String {
    /// The output as UTF-8 text of at most `limit` bytes.
    public static func string(limit: Int) -> Self {
        Self(limit: limit) { data throws(ChildError) in
            guard let text = String(data: data, encoding: .utf8) else {
                throw ChildError(.encoding, "the output of the child is not UTF-8")
            }
            return text
        }
    }
}

extension Child.Collecting where Value == Data {
    /// The bytes of the output, at most `limit`.
    public static func data(limit: Int) -> Self {
        Self(limit: limit) { data throws(ChildError) in data }
    }
}
