public import FoundationNetworking
public import RondoCore

/// The delegate of a session. All methods are optional.
///
/// Methods are called as operations of the delegate queue, or on the thread of the session's run loop
/// (rules US-17 to US-21). The delegate need not be Sendable: calls do not overlap, unless the delegate queue
/// is concurrent.
public protocol URLSessionDelegate: NSObjectProtocol {
    /// The session has become invalid; this is its last call (rule US-73).
    ///
    /// - Parameter error: Always nil.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// TLS asks whether to trust a server, or for a client certificate. All other challenges go to
    /// `URLSessionTaskDelegate` (rule US-55). Negotiate and NTLM are missing: their 401 is the response.
    ///
    /// - Parameter completionHandler: Takes the answer, now or later, on any thread (rule US-26).
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The async form of the method above; called if that is not implemented.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)
}

// The default implementations, which make the methods optional (rule US-5).
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

    /// The default implementation was called: the class of this object does not implement `method`.
    func noteDefault(_ method: SessionMethod) { SessionDelegateClass.of(type(of: self)).noteDefault(method) }
}
