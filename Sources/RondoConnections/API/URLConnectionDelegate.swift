public import FoundationNetworking
public import RondoCore

/// What every delegate of a `URLConnection` may be told or asked.
///
/// All methods are optional: one that is not there has the default that its rule names. They are called on
/// the thread of the run loop that the connection is scheduled on, while that loop runs in a mode it is
/// scheduled in, or as operations of the delegate queue; never inside `init` or `start()` (rule UC-13).
///
/// The delegate may be an object of any class and need not be Sendable. A method added in a subclass of the
/// conforming class is not called: Swift decides by the class that declares the conformance. Nor are methods of an
/// object that does not conform. The log warns of both once, by class and method, where the program's symbols tell: not
/// in a stripped program, nor in a release build of a class that is final, private or local. Methods in the
/// Swift spellings of 2015 (`didReceiveResponse:` and the like) are called where those of today are missing.
public protocol URLConnectionDelegate: NSObjectProtocol {
    /// The load has failed; the last call (rule UC-18). The error is a `URLError`, with the failing URL and a
    /// sentence for people in its user info (rule UC-59).
    func connection(_ connection: URLConnection, didFailWithError error: any Error)

    /// Whether stored credentials may answer challenges, and given ones be stored. Asked at most once, before
    /// anything is sent (rule UC-43). By default, true.
    ///
    /// Of the credentials that loads have stored, each for a protection space, the process keeps the newest 1,000, and
    /// 32 of one server; none of more than 8 KiB is stored.
    func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool

    /// The server, or a proxy, wants a credential. The load waits, however long that takes, until the
    /// challenge's sender gets an answer, from any thread; a second answer does nothing (rule UC-47).
    ///
    /// A delegate that has this method gets every challenge by it, and none of the three older ones below is
    /// called (rule UC-44).
    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)

    /// Whether the delegate wants challenges of this protection space; those of others get the default
    /// handling (rule UC-45). By default, true, except for server trust and client certificates.
    func connection(
        _ connection: URLConnection,
        canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// As `connection(_:willSendRequestFor:)`, but only where neither the URL nor the credential storage
    /// holds a credential that works (rule UC-46).
    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge that `connection(_:didReceive:)` got was cancelled; the failure follows.
    func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge)

    /// Where the time went; once, right before the last call.
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

// A default of today's spelling calls that of 2015; a default of 2015 does what its rule says and, where it
// matters, notes that the delegate does not implement the method (rule UC-74).

extension URLConnectionDelegate {
    public func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        // A URLError is no NSError object on Linux until it is made one.
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
