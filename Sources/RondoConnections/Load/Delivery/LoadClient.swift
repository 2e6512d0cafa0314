package import FoundationNetworking
internal import RondoCore

/// The client of a load: a connection, or the task of a session. It makes the calls to the delegate. This
/// protocol is all that a load knows of it.
package protocol LoadClient: AnyObject, Sendable {
    /// Whether no more calls may be made. Any thread may read it.
    var isCancelled: Bool { get }

    /// The name of the load's registrations in run loops, for traces; nil for the default.
    var nameInRunLoops: String? { get }

    /// The queue on which calls are made; nil for the thread of the loop that serves the load.
    var delegateQueue: DelegateQueue? { get }

    /// Whether the load waits after each response for the client's decision how to continue.
    var decidesOnResponses: Bool { get }

    /// Whether the partial file of a failed download is handed over.
    var keepsPartialDownloads: Bool { get }

    /// Whether informational responses other than 100 and 101 are reported.
    var wantsInformational: Bool { get }

    /// Whether the delegate's decision to trust a server also applies to later loads with the same pool,
    /// which then belongs to the client (rule US-58).
    var sharesTrustDecisions: Bool { get }

    /// Makes `call` on the calling thread.
    func make(_ call: DelegateCall) -> DelegateCall.Reply

    /// Sets the request that is sent next: the canonical one, or the one that a redirect leads to (rule
    /// UC-14).
    func setCurrentRequest(_ request: URLRequest)

    /// Called when the load continues after a challenge, on which the client or the challenge's sender has
    /// decided.
    func challengeWasDecided()

    /// Called when the threads of all its loops have ended before the load; `loadDidEnd()` follows.
    func loadDidLoseLoops()

    /// Called when the load has left its run loops, and makes no more calls (rules UC-15 and UC-16).
    func loadDidEnd()
}

extension LoadClient {
    package var keepsPartialDownloads: Bool { false }

    package func challengeWasDecided() {}

    package func loadDidLoseLoops() {}
}
