public import FoundationNetworking
public import RondoCore

/// The delegate of data and upload tasks, in addition to the methods of `URLSessionTaskDelegate`. All methods
/// are optional.
///
/// Methods are called on the session's delegate queue, or on the thread of its run loop.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// A response has arrived. Its body is not read before the answer (rule US-45). A
    /// multipart/x-mixed-replace response calls it once for each part. Not implemented: `.allow`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// A download task has taken the place of the data task, whose delegate gets no further calls for it
    /// (rule US-46).
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// A stream task has taken the place of the data task, whose delegate gets no further calls for it
    /// (rule US-47). The first bytes of the stream are those that follow the response's head.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// The next piece of the body, decoded. All pieces together are the body.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// The response is about to be cached (rule US-49). The answer is stored in its place; nil stores
    /// nothing. Not implemented: `proposedResponse` is stored.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

// The default implementations, which make the methods optional (rule US-5).
extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        noteDefault(.response)
        completionHandler(.allow)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        noteDefault(.responseAsync)
        return .allow
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        noteDefault(.becameDownload)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
    ) {
        noteDefault(.becameStream)
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        noteDefault(.data)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        noteDefault(.willCache)
        completionHandler(proposedResponse)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        noteDefault(.willCacheAsync)
        return proposedResponse
    }
}
