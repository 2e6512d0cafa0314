public import FoundationNetworking
public import RondoCore

/// What every delegate of a `URLConnection` may be told.
///
/// All methods are optional: one that is not there has the default that its rule names. They are called on
/// the thread of the run loop that the connection is scheduled on, while that loop runs in a mode it is
/// scheduled in, or as operations of the delegate queue; never inside `init` or `start()` (rule UC-13).
///
/// The delegate may be an object of any class and need not be Sendable. A method added in a subclass of the
/// conforming class is not called: Swift decides by the class that declares the conformance.
public protocol URLConnectionDelegate: NSObjectProtocol {
    /// The load has failed; the last call (rule UC-18). The error is a `URLError`, with the failing URL and a
    /// sentence for people in its user info (rule UC-59).
    func connection(_ connection: URLConnection, didFailWithError error: any Error)
}

/// What a delegate is told that takes the data as it comes.
public protocol URLConnectionDataDelegate: URLConnectionDelegate {
    /// A request is about to be sent that the program did not write so: a redirect's, or (with a nil
    /// response) the canonical form of the original (rules UC-28 and UC-29).
    ///
    /// - Returns: `request` to go on; another one to go there; nil to refuse the redirect, whose own response
    ///   is then delivered (rule UC-30). By default, `request`.
    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest?

    /// The response is here: its status and header fields, no data yet. It never changes (rule UC-19).
    func connection(_ connection: URLConnection, didReceive response: URLResponse)

    /// The next piece of the body. All pieces together are the body exactly (rule UC-20).
    func connection(_ connection: URLConnection, didReceive data: Data)

    /// A piece of the request's body has been handed to the network. Counts are in bytes and an estimate
    /// (rule UC-41).
    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int)

    /// The load is complete; the last call (rule UC-18).
    func connectionDidFinishLoading(_ connection: URLConnection)
}

extension URLConnectionDelegate {
    public func connection(_ connection: URLConnection, didFailWithError error: any Error) {}
}

extension URLConnectionDataDelegate {
    public func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        request
    }

    public func connection(_ connection: URLConnection, didReceive response: URLResponse) {}

    public func connection(_ connection: URLConnection, didReceive data: Data) {}

    public func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {}

    public func connectionDidFinishLoading(_ connection: URLConnection) {}
}
