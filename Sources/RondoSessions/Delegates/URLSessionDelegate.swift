public import FoundationNetworking
public import RondoCore

/// What a session tells its delegate; all methods are optional.
///
/// Calls are operations of the session's queue, or come on the thread of its run loop (rules US-17 to US-21). The delegate
/// need not be Sendable: one call at a time gets it, unless its queue is a concurrent one.
public protocol URLSessionDelegate: NSObjectProtocol {
    /// The last call of a session that was invalidated (rule US-73).
    ///
    /// - Parameter error: Nil.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A server is to be trusted or not, or wants to be shown a certificate. All other challenges go to the delegate of
    /// tasks (rule US-55).
    ///
    /// - Parameter completionHandler: Takes the answer, now or later, on any thread.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same as a function that waits; asked where the one with a completion handler is missing.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        noteDefault(.sessionChallenge)
        completionHandler(.performDefaultHandling, nil)
    }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        noteDefault(.sessionChallengeAsync)
        return (.performDefaultHandling, nil)
    }

    /// A default was called: the class of this object has no method of its own.
    func noteDefault(_ method: SessionMethod) { SessionDelegateClass.of(type(of: self)).noteDefault(method) }
}
