public import FoundationNetworking
internal import RondoConnections
public import RondoCore
internal import RondoMutex

/// One request of a session with everything that follows from it: redirects, challenges, the response.
///
/// A task is made suspended and begins with `resume()`. Its calls are made on the session's delegate queue or
/// run loop. The last call, with an error or nil, is made exactly once (rule US-41). Any thread may use a
/// task.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: it is immutable except for members with their own
    // locks.

    /// The state of a task. The raw values are Apple's.
    public enum State: Int, Sendable {
        /// The task makes progress, or waits for the server or a connection.
        case running = 0
        /// `resume()` was not called as often as `suspend()`.
        case suspended = 1
        /// The task was cancelled, and its last call has not been made.
        case canceling = 2
        /// The last call was made, or is being made.
        case completed = 3
    }

    /// The work and the calls that a task consists of.
    struct Parts {
        let work: TaskWork
        let calls: any TaskDelegation
    }

    let work: TaskWork
    /// Nil if the task belongs to no session.
    let calls: (any TaskDelegation)?
    private let number: Int

    /// - Parameter identifier: The identifier of a task that takes another's place; nil means that of its
    ///   work.
    init(_ parts: Parts, identifier: Int? = nil) {
        work = parts.work
        calls = parts.calls
        number = identifier ?? work.identifier
        super.init()
        // If this task takes another's place, the work belongs to a task already.
        if identifier == nil { parts.calls.belong(to: self) }
    }

    /// Makes a task without a session, which never does anything. For classes that replace tasks in tests.
    @available(*, deprecated, message: "Tasks are made by a session.")
    public override init() {
        work = TaskWork()
        calls = nil
        number = 0
        super.init()
    }

    // MARK: - Properties

    /// The number of the task in its session: 1, 2, 3 … (rule US-35).
    open var taskIdentifier: Int { number }

    /// The request as the program passed it; nil if the task was made without one.
    open var originalRequest: URLRequest? { work.plan.request }

    /// The current request, with the fields of the configuration and after redirects (rule US-36); nil for a
    /// stream task.
    open var currentRequest: URLRequest? { work.state.withLock { $0.currentRequest } }

    /// The response; nil before it arrives. It is set before the delegate gets it. A redirect that is
    /// followed does not set it.
    open var response: URLResponse? { work.state.withLock { $0.response } }

    /// The error of a failed task; nil while the task runs, and if it succeeded.
    open var error: (any Error)? { work.state.withLock { $0.error } }

    /// A name for the program's own use, and the name of the task in run loops and traces (rule US-35).
    open var taskDescription: String? {
        get { work.state.withLock { $0.description } }
        set { work.state.withLock { $0.description = newValue } }
    }

    /// The task's own delegate: each of its methods takes precedence over that of the session's delegate
    /// (rule US-40). Set it before the first `resume()`; later changes have no effect. It is retained until
    /// the last call.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { calls?.delegate }
        set {
            guard let calls, !calls.setDelegate(newValue) else { return }
            Log.sessions.warning("A delegate that a task gets after resume() has no effect.")
        }
    }

    // MARK: - Running

    /// The state of the task. When the last call is made, it is `completed` already (rule US-34).
    open var state: State { State(work.publicState(of: number)) }

    /// Begins or continues the task, once it was called as often as `suspend()`. A new task has been
    /// suspended once (rule US-29).
    open func resume() { work.resume(number) }

    /// Suspends the task until it is resumed: nothing is sent, read or called for it, and its timeouts stand
    /// still. The resource timeout stands still too (rules US-30 and US-69).
    open func suspend() { work.suspend(number) }

    /// Cancels the task. Returns at once; the only calls that follow are the metrics and the last call, with
    /// `URLError.cancelled` (rule US-32).
    open func cancel() { work.cancel(number) }

    /// The place among the tasks of the session that wait for a connection: 0 to 1, higher first, 0.5 unless
    /// set. A hint; values outside are clamped (rule US-39).
    open var priority: Float {
        get { work.state.withLock { $0.priority } }
        set { work.setPriority(newValue) }
    }

    /// The priority of a new task, 0.5.
    public static let defaultPriority: Float = TaskWork.defaultPriority
    /// A priority for tasks that can wait, 0.25.
    public static let lowPriority: Float = 0.25
    /// A priority for urgent tasks, 0.75.
    public static let highPriority: Float = 0.75

    // MARK: - Bytes (rule US-37)

    /// Bytes of the response's body as transferred, before content codings are decoded.
    open var countOfBytesReceived: Int64 { work.bytesReceived }
    /// The announced length of the response's body in bytes; -1 if not known.
    open var countOfBytesExpectedToReceive: Int64 { work.state.withLock { $0.counts.expectedToReceive } }
    /// Bytes of the request's body that were sent.
    open var countOfBytesSent: Int64 { work.state.withLock { $0.counts.sent } }
    /// The length of the request's body in bytes; -1 if not known.
    open var countOfBytesExpectedToSend: Int64 { work.state.withLock { $0.counts.expectedToSend } }

    /// A number for the program's own use; without effect.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { work.state.withLock { $0.counts.clientExpectsToSend } }
        set { work.state.withLock { $0.counts.clientExpectsToSend = newValue } }
    }
    /// A number for the program's own use; without effect.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { work.state.withLock { $0.counts.clientExpectsToReceive } }
        set { work.state.withLock { $0.counts.clientExpectsToReceive = newValue } }
    }

    /// Bytes sent and received of all bytes that are expected; the total is -1 while it is not known. It is
    /// complete when the task has succeeded. Cancelling it cancels the task; as long as it is paused the task
    /// is suspended, once however often it was paused (rule US-38).
    ///
    /// It changes on the delegate queue or the session's run loop. Made on first use.
    open var progress: Progress {
        work.progress(of: number) { [weak self] in self?.cancel() }
    }

    // MARK: - Without effect here (rule US-15)

    /// Kept, without effect: it is for background sessions, which do not exist here.
    open var earliestBeginDate: Date? {
        get { work.state.withLock { $0.earliestBeginDate } }
        set { work.state.withLock { $0.earliestBeginDate = newValue } }
    }

    /// Kept, without effect: the body is always delivered as it arrives.
    open var prefersIncrementalDelivery: Bool {
        get { work.state.withLock { $0.prefersIncrementalDelivery } }
        set { work.state.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    // MARK: - NSCopying

    /// The task itself.
    open override func copy() -> Any { self }
    /// The task itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

extension URLSessionTask.State {
    fileprivate init(_ publicState: TaskStateMachine.PublicState) {
        switch publicState {
        case .running: self = .running
        case .suspended: self = .suspended
        case .canceling: self = .canceling
        case .completed: self = .completed
        }
    }
}

/// The delegate and calls of a task, as the task sees them.
protocol TaskDelegation: AnyObject, Sendable {
    /// Sets the task that begins with `TaskClient.begin()`.
    func belong(to task: URLSessionTask)

    /// The task's own delegate; nil after the last call.
    var delegate: (any URLSessionTaskDelegate)? { get }

    /// - Returns: False if the task has begun, so that its delegate cannot be changed.
    func setDelegate(_ delegate: (any URLSessionTaskDelegate)?) -> Bool

    /// Calls `urlSession(_:didCreateTask:)`, before the function that makes the task returns.
    func tellCreated(_ task: URLSessionTask)

    /// Leaves only the program to keep the task alive, if it is a running WebSocket (rule WS-27). Any thread.
    func loosen()

    /// Makes a WebSocket task in place of one that the program has released.
    ///
    /// - Returns: Nil if the task has ended, or its session retains it.
    func replacement(of work: TaskWork) -> URLSessionTask?
}

/// A reference to a task that only the program keeps alive.
struct WeakTask {
    weak var task: URLSessionTask?
}

/// A task that delivers the response's body as data.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable` for the same reason as its superclass.
}

/// A length that is not known, -1.
public let NSURLSessionTransferSizeUnknown: Int64 = -1
