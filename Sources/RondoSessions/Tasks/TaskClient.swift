internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The receiver of a task's calls, as the task's work sees it. It stands for delegates, completion handlers
/// and the session that holds the task: types that the work does not know.
protocol TaskClient: AnyObject, Sendable {
    /// Begins the task: its session retains it until `workDidEnd()`.
    ///
    /// - Returns: False if the session has ended, and takes no task.
    func begin() -> Bool

    /// The delegate methods that the load may skip. Valid after `begin()`.
    var defaults: DelegateDefaults { get }

    /// True if no delegate takes part: an async function gets the content, or a completion handler gets all
    /// of it at the end. Valid after `begin()`.
    var isCollected: Bool { get }

    /// The same as in `LoadClient`.
    var decidesOnResponses: Bool { get }
    var wantsInformational: Bool { get }
    var sharesTrustDecisions: Bool { get }

    /// Makes a call of `work` on the calling thread. A call that ends the task takes its details from `work`.
    func make(_ call: DelegateCall, of work: TaskWork) -> DelegateCall.Reply

    /// Ends a task that has not begun.
    func endBeforeStart(_ error: URLError, of work: TaskWork)

    /// Releases everything: no further call will be made.
    func workDidEnd()
}
