public import FoundationNetworking
internal import RondoCore
public import RondoStreams

/// What a session tells its delegate, or a task its own, of tasks of any kind; all methods are optional.
///
/// Where a method takes a completion handler, the load waits for its answer: now or later, on any thread; the first one
/// counts. A handler that is let go without an answer counts as if the method were not implemented (rule US-26). Each has
/// a form that waits in its place; the one with the handler goes first.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// The task was made. The one call that is made before the function that makes the task returns.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// There is no network, and the task waits for one instead of failing (`waitsForConnectivity`). At most once.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Never called: only background sessions delay requests (rule US-15).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The server redirects the task to `request`. The answer: that request, or another, is sent; nil: the redirect's own
    /// response is the result. By default the redirect is followed.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// The server, or a proxy, wants a credential (rules US-55 to US-57). Challenges of TLS come here too where the method
    /// for those is missing.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The body has to be sent, or sent again, from a new, unopened stream. Nil fails the task with
    /// `requestBodyStreamExhausted`. Where the method is missing, the body of a request is kept and repeated, and an upload
    /// of a stream fails.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void)

    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> RondoStreams.InputStream?

    /// Never called: uploads are not resumed (rule US-61).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void)

    /// A piece of the request's body was handed to the network.
    ///
    /// - Parameters:
    ///   - bytesSent: Bytes of this piece.
    ///   - totalBytesSent: Bytes so far.
    ///   - totalBytesExpectedToSend: Bytes in all; -1: not known.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An informational response (1xx) other than 100 and 101.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    )

    /// Where the time of the task went; right before the last call.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The last call of the task.
    ///
    /// - Parameter error: A `URLError`, or what a `URLProtocol` of the program says; nil: all has come. An error status is a
    ///   response like any other.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        noteDefault(.created)
    }

    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        noteDefault(.waiting)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        completionHandler(.continueLoading, nil)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        noteDefault(.redirect)
        completionHandler(request)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        noteDefault(.redirectAsync)
        return request
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        noteDefault(.taskChallenge)
        completionHandler(.performDefaultHandling, nil)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        noteDefault(.taskChallengeAsync)
        return (.performDefaultHandling, nil)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void
    ) {
        noteDefault(.bodyStream)
        completionHandler(nil)
    }

    public func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> RondoStreams.InputStream? {
        noteDefault(.bodyStreamAsync)
        return nil
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void
    ) {
        completionHandler(nil)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        noteDefault(.sent)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        noteDefault(.informational)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        noteDefault(.metrics)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        noteDefault(.completed)
    }
}
