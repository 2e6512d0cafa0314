package import FoundationNetworking
internal import RondoCore

/// What a load works for: a connection, or the task of a session, which makes the calls to the delegate.
///
/// A load knows nothing else of it.
package protocol LoadClient: AnyObject, Sendable {
    /// No call may be made any more. Any thread.
    var isCancelled: Bool { get }

    /// What the load's registrations in run loops are called in traces; nil: nothing of their own.
    var nameInRunLoops: String? { get }

    /// The queue that calls are made on; nil: the thread of the loop that serves the load.
    var delegateQueue: DelegateQueue? { get }

    /// A load waits after each response until the client has said how it goes on.
    var decidesOnResponses: Bool { get }

    /// A download that fails is handed over, as far as it has come.
    var keepsPartialDownloads: Bool { get }

    /// Informational responses other than 100 and 101 are told of.
    var hearsOfInformational: Bool { get }

    /// What the delegate says of a server holds for later loads by the same pool, which is no other's (rule US-58).
    var sharesVerdicts: Bool { get }

    /// Makes `call` on the calling thread.
    func make(_ call: DelegateCall) -> DelegateCall.Reply

    /// The request that is sent next: the canonical one, or the one that a redirect leads to (rule UC-14).
    func setCurrentRequest(_ request: URLRequest)

    /// The load has left its run loops, and makes no more calls (rules UC-15 and UC-16).
    func loadDidEnd()
}

extension LoadClient {
    package var keepsPartialDownloads: Bool { false }
}
