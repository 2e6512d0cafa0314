internal import RondoCore

/// Makes the calls to a session's delegate.
protocol SessionClient: AnyObject, Sendable {
    /// The delegate; nil once the session has become invalid.
    var delegate: (any URLSessionDelegate)? { get }

    /// Makes the parts of a new task.
    func parts(of session: URLSession, _ plan: TaskPlan, _ receiver: TaskReceiver) -> URLSessionTask.Parts

    /// Makes the last call of the session and releases the delegate (rule US-73). On the delegate queue or
    /// the session's run loop.
    func tellInvalid(_ session: URLSession)
}
