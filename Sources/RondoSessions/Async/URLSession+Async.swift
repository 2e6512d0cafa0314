public import FoundationNetworking
internal import RondoConnections
public import RondoCore

// They work in every session. In one on a run loop they go on only while that loop runs in the session's modes.
//
// The delegate that is handed in is the task's: it is asked first, and hears of response and content too; the session's
// delegate hears of the rest (rule US-83). Where the Swift task is cancelled, the load is, and `URLError.cancelled` is thrown at
// once, wherever the load stands (rule US-82).

extension URLSession {
    /// Loads `request` and returns its whole body, up to 1 GiB. An error status is a response.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let wait = TaskWait<(Data, URLResponse)>(url: request.url)
        let task = URLSessionDataTask(
            TaskWork(self, request, .data, .data(wait.handler()), isAwaited: true))
        return try await wait.outcome(of: awaited(task, delegate))
    }

    /// Loads a URL; see `data(for:delegate:)`.
    public nonisolated(nonsending) func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Loads `request` and returns once the response is there; the body is read as it comes: byte by byte, by `lines`,
    /// `characters` and other ways.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let source = ByteSource(url: request.url)
        let task = awaited(
            URLSessionDataTask(
                TaskWork(self, request, .data, .bytes(ByteFeed(source, url: request.url)), isAwaited: true)),
            delegate)
        let handle = ByteSource.Handle(source)
        let response = try await source.response(of: TaskFlow(task: task))
        return (AsyncBytes(bytes: URLConnection.Bytes(handle: handle), task: task), response)
    }

    /// Loads a URL; see `bytes(for:delegate:)`.
    public nonisolated(nonsending) func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// Takes in a task that an async function waits for.
    func awaited<Made: URLSessionTask>(_ task: Made, _ delegate: (any URLSessionTaskDelegate)?) -> Made {
        if let delegate { task.delegate = delegate }
        return made(task)
    }
}
