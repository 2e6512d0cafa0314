internal import RondoCore

// Tasks that an async function waits for.

extension TaskMaking {
    /// Takes in a task, with the delegate that the function was given.
    func awaited<Made: URLSessionTask>(_ task: Made, _ delegate: (any URLSessionTaskDelegate)?) -> Made {
        if let delegate { task.delegate = delegate }
        return made(task)
    }

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
