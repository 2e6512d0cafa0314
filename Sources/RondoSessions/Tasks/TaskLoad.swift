internal import RondoConnections
internal import RondoCore

/// What a task has running: a load, or the connection of a stream task. Any thread.
protocol TaskLoad: AnyObject, Sendable {
    /// Enters the driver's modes; the first step is made there.
    func start()
    /// Nothing is sent, read or told until `resume()` (rule US-30).
    func suspend()
    func resume()
    /// Ends it: the client hears of that end alone.
    ///
    /// - Parameter keeps: What there is of a download goes with the end.
    func abort(_ failure: LoadFailure, keepingDownload keeps: Bool)
    /// The program lags behind, or does no more.
    func holdBack(_ holds: Bool)
    /// What a delegate has said to a question.
    func answer(_ answer: DelegateCall.Answer)

    var priority: Float { get set }
    /// Of the body, as they were transferred.
    var transferredBytes: Int64 { get }
    var currentStanding: LoadStanding { get }
}

extension TaskLoad {
    func abort(_ failure: LoadFailure) { abort(failure, keepingDownload: false) }
}

extension Load: TaskLoad {}
