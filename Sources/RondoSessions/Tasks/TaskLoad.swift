internal import RondoConnections
internal import RondoCore

/// The running part of a task: a load, or the connection of a stream task. Any thread.
protocol TaskLoad: AnyObject, Sendable {
    /// Enters the session's modes. The first step is made there.
    func start()
    /// Stops sending, reading and calling until `resume()` (rule US-30).
    func suspend()
    func resume()
    /// Ends the load; the client gets only the end.
    ///
    /// - Parameter keeps: True if the saved part of a download is passed on with the end.
    func abort(_ failure: LoadFailure, keepingDownload keeps: Bool)
    /// Stops or continues reading for a program that is slower than the server.
    func holdBack(_ holds: Bool)
    /// Passes a delegate's reply to the load.
    func reply(_ reply: DelegateCall.Reply)
    /// Sets the priority among the loads that wait for a connection.
    func setPriority(_ priority: Float)

    /// Bytes of the body as transferred.
    var transferredBytes: Int64 { get }
    var obstacle: LoadObstacle? { get }
    /// Whether a call waits for the delegate queue.
    var hasWaitingCalls: Bool { get }
}

extension TaskLoad {
    func abort(_ failure: LoadFailure) { abort(failure, keepingDownload: false) }
}

extension Load: TaskLoad {}
