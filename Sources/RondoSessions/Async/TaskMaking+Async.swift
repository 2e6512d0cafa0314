internal import RondoCore

// Tasks whose outcome an async function awaits.

extension TaskMaking {
    /// Gives a new task the delegate that the async function was called with, and adds the task to the
    /// session.
    func awaited<Made: URLSessionTask>(_ task: Made, _ delegate: (any URLSessionTaskDelegate)?) -> Made {
        if let delegate { task.delegate = delegate }
        return made(task)
    }

    /// Adds the task to the session, resumes it and waits for its outcome. Cancelling the Swift task cancels
    /// `task`.
    nonisolated(nonsending) func outcome<Value: Sendable>(
        of task: URLSessionTask, _ delegate: (any URLSessionTaskDelegate)?, _ wait: TaskWait<Value>
    ) async throws -> Value {
        let task = awaited(task, delegate)
        return try await wait.outcome {
            task.resume()
        } cancel: {
            task.cancel()
        }
    }
}
