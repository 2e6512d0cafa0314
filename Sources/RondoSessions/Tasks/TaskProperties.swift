internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The state of a task that its work stores: the values of its properties, its load, and the step that waits
/// until it is resumed.
struct TaskProperties {
    // State machines of their own, whose inputs `TaskWork` calls:

    var life = TaskStateMachine()
    var progress = TaskProgress()

    // Set by `TaskWork` and `URLSessionTask`, because each is the value of one member of the task, and has no
    // rule:

    var currentRequest: URLRequest?
    var response: URLResponse?
    var description: String?
    var priority = TaskWork.defaultPriority
    var earliestBeginDate: Date?
    var prefersIncrementalDelivery = true
    var counts = TaskCounts()
    /// The delegate method whose reply is missing, for explanations.
    var owedReply: String?

    // Set by `TaskWork`, which makes the first two, and takes all of them out at the end of the load to
    // release them without the lock:

    var load: (any TaskLoad)?
    /// Set for a data task whose request has an Upgrade field.
    var upgrade: StreamUpgrade?
    /// Delivered right before the end.
    var metrics: LoadMetrics?
    /// Handlers that get the resume data of a download before its end.
    var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
    /// The step that waits until the task is resumed: it asks the delegate a question of the load, or carries
    /// out the reply. One place is enough, because the load asks one question at a time.
    var heldStep: (@Sendable () -> Void)?

    // Changed here only:

    /// The identifier of the task that has taken the place of the original task.
    private(set) var successor: Int?
    /// A stream task has taken the task's place.
    private(set) var hasBecomeStream = false
    private(set) var error: (any Error)?
    /// The task continues an earlier download, and this has not been reported yet.
    private var awaitsRest: Bool

    /// - Parameter awaitsRest: Whether the task continues an earlier download.
    init(_ request: URLRequest? = nil, expectedToSend: Int64 = 0, awaitsRest: Bool = false) {
        currentRequest = request
        counts.expectedToSend = expectedToSend
        self.awaitsRest = awaitsRest
    }

    /// Suspends or resumes the task if its progress was paused or resumed.
    mutating func followProgress() -> TaskStateMachine.Action {
        switch progress.takeChange() {
        case true?: life.suspend()
        case false?: life.resume()
        case nil: .nothing
        }
    }

    /// Whether to report that the task continues an earlier download; true at most once.
    mutating func takeAwaitedRest() -> Bool {
        defer { awaitsRest = false }
        return awaitsRest
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

    // MARK: - Another task

    /// Makes another task, with this identifier, the one that the program uses.
    ///
    /// - Returns: False if the task has ended.
    mutating func pass(to successor: Int) -> Bool {
        guard life.isOutstanding, self.successor == nil else { return false }
        self.successor = successor
        // The new task has its own progress.
        progress = TaskProgress()
        return true
    }

    /// Lets a stream task, with the identifier `successor`, take the task's place.
    ///
    /// - Returns: Nil if there is no connection to hand over, or the task has ended.
    mutating func becomeStream(successor: Int) -> StreamUpgrade? {
        guard let upgrade, pass(to: successor) else { return nil }
        hasBecomeStream = true
        return upgrade
    }

    // MARK: - The end

    /// Cancels a task for its resume data.
    ///
    /// - Returns: Nil if its last call was made already: `handler` is not kept then.
    mutating func cancel(for handler: @escaping @Sendable (Data?) -> Void) -> TaskStateMachine.Action? {
        guard life.awaitsLastCall else { return nil }
        resumeDataHandlers.append(handler)
        return life.cancel()
    }

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
