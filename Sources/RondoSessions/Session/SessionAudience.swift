internal import RondoCore

/// The receiving side of a session, as the session knows it: what makes the calls to its delegate.
protocol SessionAudience: AnyObject, Sendable {
    /// Nil once the session has become invalid.
    var delegate: (any URLSessionDelegate)? { get }

    /// What a new task of the session consists of.
    func parts(of session: URLSession, _ plan: TaskPlan, _ receiver: TaskReceiver) -> URLSessionTask.Parts

    /// The last call of the session; with it its delegate is let go (rule US-73). Where the session's calls come.
    func tellInvalid(_ session: URLSession)
}
