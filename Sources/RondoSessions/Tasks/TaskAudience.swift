internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The receiving side of a task, as the task's work knows it. Behind it are delegates, completion handlers and the session that
/// holds the task: types that the work does not name.
protocol TaskAudience: AnyObject, Sendable {
    /// The task begins: from here on its session holds it, until `workDidEnd()`.
    ///
    /// - Returns: False: the session has come to its end, and takes no task.
    func begin() -> Bool

    /// What the load can know of the delegates. After `begin()`.
    var defaults: DelegateDefaults { get }

    /// No delegate hears of the task: an async function gets what it brings, or a completion handler all of it with the end.
    /// After `begin()`.
    var isCollected: Bool { get }

    /// As `LoadClient` has them.
    var answersResponses: Bool { get }
    var hearsOfInformational: Bool { get }
    var sharesVerdicts: Bool { get }

    /// Makes a call of `work` on the calling thread; a call that ends the task asks `work` for what there is to tell.
    func make(_ call: DelegateCall, of work: TaskWork) -> DelegateCall.Answer

    /// The task is over before it has begun.
    func endUnborn(_ error: URLError)

    /// No call comes any more: everything is let go.
    func workDidEnd()
}
