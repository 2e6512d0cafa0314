internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

// Tasks whose outcome an async function awaits. `delegate` becomes the task's own.

extension TaskMaking {
    nonisolated(nonsending) func awaitedData(
        _ request: URLRequest, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        let wait = TaskWait<(Data, URLResponse)>(url: request.url)
        let plan = TaskPlan(.data, request, isAwaited: true)
        let task = URLSessionDataTask(parts(plan, .data(wait.handler())))
        return try await outcome(of: task, delegate, wait)
    }

    nonisolated(nonsending) func awaitedUpload(
        _ request: URLRequest?, _ content: TaskContent, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        let wait = TaskWait<(Data, URLResponse)>(url: request?.url)
        let plan = TaskPlan(.upload, request, content, isAwaited: true)
        let task = URLSessionUploadTask(parts(plan, .data(wait.handler())))
        return try await outcome(of: task, delegate, wait)
    }

    nonisolated(nonsending) func awaitedDownload(
        _ request: URLRequest?, _ content: TaskContent, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        let wait = TaskWait<(URL, URLResponse)>(url: request?.url)
        let plan = TaskPlan(.download, request, content, isAwaited: true)
        let task = URLSessionDownloadTask(parts(plan, .download(wait.fileHandler())))
        return try await outcome(of: task, delegate, wait)
    }

    /// - Returns: The response, and the bytes of the body, which arrive later.
    nonisolated(nonsending) func awaitedBytes(
        _ request: URLRequest, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URLSession.AsyncBytes, URLResponse) {
        let source = ByteSource(url: request.url)
        let plan = TaskPlan(.data, request, isAwaited: true)
        let task = awaited(
            URLSessionDataTask(parts(plan, .bytes(ByteFeed(source, url: request.url)))), delegate)
        let handle = ByteSource.Handle(source)
        let response = try await source.response(of: TaskFlow(task: task))
        return (URLSession.AsyncBytes(bytes: URLConnection.Bytes(handle: handle), task: task), response)
    }

    /// Gives a new task the delegate that the async function was called with, and adds the task to the
    /// session.
    private func awaited<Made: URLSessionTask>(_ task: Made, _ delegate: (any URLSessionTaskDelegate)?)
        -> Made
    {
        if let delegate { task.delegate = delegate }
        return made(task)
    }

    /// Adds the task to the session, resumes it and waits for its outcome. Cancelling the Swift task cancels
    /// `task`.
    private nonisolated(nonsending) func outcome<Value: Sendable>(
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

/// The task as the reader of its bytes controls it.
private struct TaskFlow: ByteFlow {
    let task: URLSessionTask

    func start() { task.resume() }
    func holdBack(_ holds: Bool) { task.work.holdBack(holds) }
    func cancel() { task.cancel() }
}
