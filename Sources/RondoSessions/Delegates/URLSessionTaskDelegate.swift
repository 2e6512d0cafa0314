public import FoundationNetworking
internal import RondoCore
public import RondoStreams

/// The delegate of tasks of every kind, for a session or for one task. All methods are optional.
///
/// Methods are called on the session's delegate queue, or on the thread of its run loop. If a method takes a
/// completion handler, the load waits for the answer, which may be given now or later, on any thread; the
/// first answer counts. A handler that is released without an answer counts as if the method were not
/// implemented (rule US-26). Each such method has an async form; the form with the completion handler takes
/// precedence.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// The task was made. This is the only call that is made before the function that makes the task returns
    /// (rule US-24).
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// There is no network, and the task waits for one instead of failing (`waitsForConnectivity`). Called at
    /// most once.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Never called: only background sessions delay requests (rule US-15).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The server redirects the task to `request` (rule US-50). The request given as answer is sent; with nil
    /// the redirect's own response is the result. Not implemented: the redirect is followed.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// The server or a proxy asks for credentials (rules US-55 to US-57). Challenges of TLS come here if the
    /// session-level method is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The task needs a new, unopened stream to send, or send again, its body from (rule US-60). Nil fails
    /// the task with `requestBodyStreamExhausted`. Not implemented: the body of the request is kept and
    /// repeated, and an upload of a stream fails.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> RondoStreams.InputStream?

    /// Never called: uploads cannot be resumed (rule US-61).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (RondoStreams.InputStream?) -> Void)

    /// A piece of the request's body was handed to the network.
    ///
    /// - Parameters:
    ///   - bytesSent: Bytes of this piece.
    ///   - totalBytesSent: Bytes so far.
    ///   - totalBytesExpectedToSend: Bytes in all; -1 if not known.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An informational response (1xx) other than 100 and 101 has arrived (rule US-48).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    )

    /// The metrics of the task, right before its last call (rule US-66).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task has ended; this is its last call (rule US-41).
    ///
    /// - Parameter error: A `URLError`, or any error of a `URLProtocol` of the program; nil if the task
    ///   succeeded. A response with an error status is a success.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

// The default implementations, which make the methods optional (rule US-5).
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
