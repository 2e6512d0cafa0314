internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The state of a task that its work stores: the values of its properties, its load, and the step that waits until it is
/// resumed.
struct TaskProperties {
    var life = TaskStateMachine()
    /// The identifier of the task that has taken the place of the original task.
    var successor: Int?
    var load: (any TaskLoad)?
    /// Set for a data task whose request has an Upgrade field.
    var upgrade: StreamUpgrade?
    /// A stream task has taken the task's place.
    var hasBecomeStream = false
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var description: String?
    var priority = TaskWork.defaultPriority
    var earliestBeginDate: Date?
    var prefersIncrementalDelivery = true
    var counts = TaskCounts()
    var progress = TaskProgress()
    /// Handlers that get the resume data of a download before its end.
    var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
    /// The task continues an earlier download, and this has not been reported yet.
    var awaitsRest = false
    /// The delegate method whose reply is missing, for explanations.
    var owedReply: String?
    /// Delivered right before the end.
    var metrics: LoadMetrics?
    /// The step that waits until the task is resumed: it asks the delegate a question of the load, or carries out the reply.
    /// One place is enough, because the load asks one question at a time.
    var heldStep: (@Sendable () -> Void)?

    /// Suspends or resumes the task if its progress was paused or resumed.
    mutating func followProgress() -> TaskStateMachine.Action {
        switch progress.takeChange() {
        case true?: life.suspend()
        case false?: life.resume()
        case nil: .nothing
        }
    }

    /// Keeps `step` until the task is resumed; false if it is not suspended.
    mutating func hold(_ step: @escaping @Sendable () -> Void) -> Bool {
        if life.isSuspended { heldStep = step }
        return life.isSuspended
    }

    /// Keeps `step`, which makes a call for the task, if the task is suspended.
    ///
    /// - Returns: True if the call may be made now.
    mutating func admitOrHold(_ step: @escaping @Sendable () -> Void) -> Bool {
        life.isOutstanding && !hold(step)
    }

    /// Takes the step that was kept, unless the task is suspended.
    mutating func takeHeldStep() -> (@Sendable () -> Void)? {
        if life.isSuspended { return nil }
        defer { heldStep = nil }
        return heldStep
    }

    /// What the progress of the task shows.
    ///
    /// - Parameter received: Bytes of the body as transferred.
    func progressValues(received: Int64) -> TaskProgress.Values {
        TaskProgress.Values(
            counts, received: received, hasResponse: response != nil,
            hasSucceeded: life.isCompleted && error == nil)
    }

    // MARK: - The end

    /// The details of a task's last call.
    struct Ending {
        let response: URLResponse?
        /// True if no call is made, because another task or the program has the connection.
        let isSilent: Bool
        /// Nil if nothing was measured.
        let metrics: LoadMetrics?
        let resumeDataHandlers: [@Sendable (Data?) -> Void]
    }

    /// Notes the end of the task before its last call; nil if that was made already.
    ///
    /// - Parameter isCaptured: The program has the connection of a stream task.
    mutating func complete(_ error: (any Error)?, isCaptured: Bool) -> Ending? {
        guard life.complete() else { return nil }
        self.error = error
        counts.received = load?.transferredBytes ?? 0
        defer { resumeDataHandlers = [] }
        return Ending(
            response: response, isSilent: hasBecomeStream || isCaptured, metrics: metrics,
            resumeDataHandlers: resumeDataHandlers)
    }
}
