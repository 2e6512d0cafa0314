public import FoundationNetworking
public import RondoCore

/// The delegate of a `URLConnection`: the methods that every kind of delegate has.
///
/// All methods are optional: a method that is not implemented has the default that its rule names. They are
/// called on the thread of the run loop that the connection is scheduled on, while that loop runs in a mode
/// it is scheduled in, or as operations of the delegate queue; never inside `init` or `start()` (rule UC-13).
///
/// The delegate may be an object of any class and need not be Sendable. A method added in a subclass of the
/// conforming class is not called: Swift binds the method where the conformance is declared. Methods of an
/// object that does not conform are not called either. The log warns of both once, by class and method, if
/// the program's symbols reveal it: not in a stripped program, nor, in a release build, for a class that is
/// final, private or local. Methods in the Swift spellings of 2015 (`didReceiveResponse:` and the like) are
/// called if those of today are missing.
public protocol URLConnectionDelegate: NSObjectProtocol {
    /// The load has failed; the last call (rule UC-18). The error is a `URLError`, with the failing URL and a
    /// readable sentence in its user info (rule UC-59).
    func connection(_ connection: URLConnection, didFailWithError error: any Error)

    /// Whether stored credentials may answer challenges, and credentials that the delegate gives be stored.
    /// Called at most once, before anything is sent (rule UC-43). By default, true.
    ///
    /// The process keeps the newest 1,000 of the credentials that loads have stored, each for a protection
    /// space, and 32 for one server; a credential of more than 8 KiB is not stored.
    func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool

    /// The server, or a proxy, wants a credential. The load waits, however long that takes, until the
    /// challenge's sender gets an answer, from any thread; a second answer does nothing (rule UC-47).
    ///
    /// A delegate that implements this method gets every challenge through it, and none of the three older
    /// methods below is called (rule UC-44).
    ///
    /// Trust in a server whose certificate has problems, and an identity, hold for this load alone, and for
    /// all its connections to that server: it asks again only about another certificate, about other
    /// problems, or if the server names other authorities (rule UC-52).
    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)

    /// Whether the delegate wants challenges of this protection space; other challenges get the default
    /// handling (rule UC-45). By default, true, except for server trust and client certificates.
    func connection(
        _ connection: URLConnection,
        canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// Like `connection(_:willSendRequestFor:)`, but called only if neither the URL nor the credential
    /// storage has a credential that works (rule UC-46).
    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge that `connection(_:didReceive:)` got was cancelled; the failure follows.
    func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge)

    /// The load's metrics; once, immediately before the last call.
    func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics)

    // MARK: The spellings of 2015

    @available(*, deprecated, message: "Declare the error as `any Error`.")
    func connection(_ connection: URLConnection, didFailWithError error: NSError)

    @available(*, deprecated, renamed: "connection(_:willSendRequestFor:)")
    func connection(
        _ connection: URLConnection,
        willSendRequestForAuthenticationChallenge challenge: URLAuthenticationChallenge)

    @available(*, deprecated, renamed: "connection(_:didReceive:)")
    func connection(
        _ connection: URLConnection, didReceiveAuthenticationChallenge challenge: URLAuthenticationChallenge)

    @available(*, deprecated, renamed: "connection(_:didCancel:)")
    func connection(
        _ connection: URLConnection, didCancelAuthenticationChallenge challenge: URLAuthenticationChallenge)
}

// The default of a current spelling calls the one of 2015. The default of 2015 does what its rule says and,
// if that matters, notes that the delegate does not implement the method (rule UC-74).

extension URLConnectionDelegate {
    public func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        // On Linux a URLError has to be converted to an NSError.
        OldSpellings.calls.didFail(self, connection, error as NSError)
    }

    public func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool {
        connection.noteDefault(of: .shouldUseCredentialStorage, by: self)
        return true
    }

    public func connection(
        _ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge
    ) {
        OldSpellings.calls.willSendRequestFor(self, connection, challenge)
    }

    public func connection(
        _ connection: URLConnection,
        canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        connection.noteDefault(of: .canAuthenticate)
        connection.noteDefault(of: .canAuthenticate, by: self)
        return true
    }

    public func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        OldSpellings.calls.didReceive(self, connection, challenge)
    }

    public func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge) {
        OldSpellings.calls.didCancel(self, connection, challenge)
    }

    public func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
        connection.noteDefault(of: .didCollectMetrics, by: self)
    }

    // MARK: The spellings of 2015

    public func connection(_ connection: URLConnection, didFailWithError error: NSError) {}

    public func connection(
        _ connection: URLConnection,
        willSendRequestForAuthenticationChallenge challenge: URLAuthenticationChallenge
    ) {
        connection.noteDefault(of: .willSendRequestForChallenge)
        connection.noteDefault(of: .willSendRequestForChallenge, by: self)
    }

    public func connection(
        _ connection: URLConnection, didReceiveAuthenticationChallenge challenge: URLAuthenticationChallenge
    ) {
        connection.noteDefault(of: .didReceiveChallenge)
    }

    public func connection(
        _ connection: URLConnection, didCancelAuthenticationChallenge challenge: URLAuthenticationChallenge
    ) {}
}
