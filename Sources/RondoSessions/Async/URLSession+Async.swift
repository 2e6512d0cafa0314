public import FoundationNetworking
internal import RondoConnections
public import RondoCore

// These functions work in every session. In a session on a run loop they make progress only while that loop
// runs in the session's modes (rule US-81).
//
// `delegate` becomes the task's own delegate: its methods are called before those of the session's delegate,
// and it alone gets response and content (rule US-83). When the Swift task is cancelled, the load is
// cancelled too, and the function throws `URLError.cancelled` at once, in whatever state the load is
// (rule US-82).

extension URLSession {
    /// Loads `request` and returns its whole body, of at most 1 GiB (rule US-44). A response with an error
    /// status is returned like any other.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await making.awaitedData(request, delegate)
    }

    /// Loads `url`; see `data(for:delegate:)`.
    public nonisolated(nonsending) func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends `bodyData` as the body of `request`, in place of the request's own body, and returns the
    /// response's body as `data(for:delegate:)` does. The method stays that of the request.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await making.awaitedUpload(request, .data(bodyData), delegate)
    }

    /// Sends the content of a file as the body of `request`; see `upload(for:from:delegate:)`. The file is
    /// read as it is sent, in constant memory (rule US-59).
    ///
    /// - Throws: A `URLError`, also if the file cannot be read; `.cancelled` if the Swift task was
    ///   cancelled.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await making.awaitedUpload(request, .file(fileURL), delegate)
    }

    /// Fails: uploads cannot be resumed (rule US-61).
    ///
    /// - Throws: `URLError.unsupportedURL`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await making.awaitedUpload(nil, .rest(nil), delegate)
    }

    /// Loads `request` into a temporary file, in constant memory. The caller owns the file and moves or
    /// deletes it.
    ///
    /// - Throws: A `URLError`, with `downloadTaskResumeData` if the download can be continued. If the Swift
    ///   task was cancelled, `.cancelled` without resume data.
    public nonisolated(nonsending) func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await making.awaitedDownload(request, .ofRequest, delegate)
    }

    /// Loads `url` into a temporary file; see `download(for:delegate:)`.
    public nonisolated(nonsending) func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Continues a download that was cancelled or failed, if the server can; otherwise starts again
    /// (rule US-64). See `download(for:delegate:)`.
    ///
    /// - Throws: A `URLError`; `.unsupportedURL` if `resumeData` is not the resume data of a download.
    public nonisolated(nonsending) func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        let resumeData = ResumeData(resumeData)
        return try await making.awaitedDownload(resumeData?.request, .rest(resumeData), delegate)
    }

    /// Loads `request` and returns as soon as the response is there. The body is read as it arrives: as
    /// bytes, lines or characters (rule US-84).
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await making.awaitedBytes(request, delegate)
    }

    /// Loads `url`; see `bytes(for:delegate:)`.
    public nonisolated(nonsending) func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }
}
