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
            making.parts(TaskPlan(.data, request, isAwaited: true), .data(wait.handler())))
        return try await making.outcome(of: task, delegate, wait)
    }

    /// Loads a URL; see `data(for:delegate:)`.
    public nonisolated(nonsending) func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends `bodyData` with `request`, in the place of a body that it has, and returns the response's body as
    /// `data(for:delegate:)` does. The method is the request's.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await upload(request, .data(bodyData), delegate)
    }

    /// The same of a file, which is read as it is sent, in constant memory (rule US-59).
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await upload(request, .file(fileURL), delegate)
    }

    private nonisolated(nonsending) func upload(
        _ request: URLRequest, _ content: TaskContent, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        let wait = TaskWait<(Data, URLResponse)>(url: request.url)
        let task = URLSessionUploadTask(
            making.parts(TaskPlan(.upload, request, content, isAwaited: true), .data(wait.handler())))
        return try await making.outcome(of: task, delegate, wait)
    }

    /// Loads `request` into a temporary file, in constant memory. The file is the caller's to move or remove.
    ///
    /// - Throws: A `URLError`, with `downloadTaskResumeData` where the download can be continued; `.cancelled`, without, if the
    ///   Swift task was cancelled.
    public nonisolated(nonsending) func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await download(request, .ofRequest, delegate)
    }

    /// Loads a URL; see `download(for:delegate:)`.
    public nonisolated(nonsending) func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Goes on with a download that was cancelled or has failed, where the server can; otherwise it begins anew (rule US-64).
    public nonisolated(nonsending) func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        let resumeData = ResumeData(resumeData)
        return try await download(resumeData?.request, .rest(resumeData), delegate)
    }

    private nonisolated(nonsending) func download(
        _ request: URLRequest?, _ content: TaskContent, _ delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        let wait = TaskWait<(URL, URLResponse)>(url: request?.url)
        let task = URLSessionDownloadTask(
            making.parts(
                TaskPlan(.download, request, content, isAwaited: true), .download(wait.fileHandler())))
        return try await making.outcome(of: task, delegate, wait)
    }

    /// Loads `request` and returns once the response is there; the body is read as it comes: byte by byte, by `lines`,
    /// `characters` and other ways.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let source = ByteSource(url: request.url)
        let task = making.awaited(
            URLSessionDataTask(
                making.parts(
                    TaskPlan(.data, request, isAwaited: true), .bytes(ByteFeed(source, url: request.url)))),
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
}

/// A task, to the reader of its bytes.
private struct TaskFlow: ByteFlow {
    let task: URLSessionTask

    func start() { task.resume() }
    func holdBack(_ holds: Bool) { task.work.holdBack(holds) }
    func cancel() { task.cancel() }
}
