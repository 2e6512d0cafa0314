public import FoundationNetworking
internal import RondoConnections
public import RondoCore
internal import RondoMutex

/// One request of a session, with all that follows from it: redirects, challenges, the response.
///
/// It is made suspended, and begins with `resume()`. What comes of it is told where the session's calls come; the last call
/// is one with an error or with none, and comes exactly once. Any thread may use it.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: it has nothing that changes but what has a lock of its own.

    /// Where a task stands; the numbers are Apple's.
    public enum State: Int, Sendable {
        case running = 0
        case suspended = 1
        case canceling = 2
        case completed = 3
    }

    /// What a task consists of.
    struct Parts {
        let work: TaskWork
        let calls: any TaskDelegation
    }

    let work: TaskWork
    /// Nil: of no session.
    let calls: (any TaskDelegation)?
    private let number: Int

    /// - Parameter identifier: Another than that of its work, for a task that takes another's place.
    init(_ parts: Parts, identifier: Int? = nil) {
        work = parts.work
        calls = parts.calls
        number = identifier ?? work.identifier
        super.init()
        // The work is another task's already where this one takes its place.
        if identifier == nil { parts.calls.belong(to: self) }
    }

    /// A task of no session, which never does anything; for classes that stand in for tasks in tests.
    @available(*, deprecated, message: "Tasks are made by a session.")
    public override init() {
        work = TaskWork()
        calls = nil
        number = 0
        super.init()
    }

    // MARK: - What it is

    /// 1, 2, 3 … within the session (rule US-35).
    open var taskIdentifier: Int { number }

    /// The request as it was given.
    open var originalRequest: URLRequest? { work.plan.request }

    /// The request as it stands: with what the configuration adds, after redirects.
    open var currentRequest: URLRequest? { work.state.withLock { $0.currentRequest } }

    /// Set before it is told of; a redirect that is followed does not set it.
    open var response: URLResponse? { work.state.withLock { $0.response } }

    /// Why the task has failed; nil while it runs, and if it succeeded.
    open var error: (any Error)? { work.state.withLock { $0.error } }

    /// A name for the program's own use; it also names what the task puts into its run loop.
    open var taskDescription: String? {
        get { work.state.withLock { $0.description } }
        set { work.state.withLock { $0.description = newValue } }
    }

    /// Asked before the session's delegate, method by method (rule US-40). To be set before the first `resume()`; held until
    /// the last call.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { calls?.delegate }
        set {
            guard let calls, !calls.setDelegate(newValue) else { return }
            Log.sessions.warning("A delegate that a task gets after resume() has no effect.")
        }
    }

    // MARK: - Running

    open var state: State { State(work.standing(of: number)) }

    /// Begins or goes on, once it was called as often as `suspend()`. A new task has been suspended once.
    open func resume() { work.resume(number) }

    /// Nothing is sent or read for the task any more, no time passes for its timeouts, and nothing is told of it, until it is
    /// resumed (rule US-30).
    open func suspend() { work.suspend(number) }

    /// Ends the task: what is told of it still is the end, with `URLError.cancelled` (rule US-32).
    open func cancel() { work.cancel(number) }

    /// Where the task waits in line for a connection: 0…1, higher first. A hint.
    open var priority: Float {
        get { work.state.withLock { $0.priority } }
        set { work.setPriority(newValue) }
    }

    public static let defaultPriority: Float = TaskWork.defaultPriority
    public static let lowPriority: Float = 0.25
    public static let highPriority: Float = 0.75

    // MARK: - Bytes (rule US-37)

    /// Bytes of the response's body, as they were transferred.
    open var countOfBytesReceived: Int64 { work.bytesReceived }
    /// The announced length; -1: not known.
    open var countOfBytesExpectedToReceive: Int64 { work.state.withLock { $0.counts.expectedToReceive } }
    /// Bytes of the request's body.
    open var countOfBytesSent: Int64 { work.state.withLock { $0.counts.sent } }
    /// -1: not known.
    open var countOfBytesExpectedToSend: Int64 { work.state.withLock { $0.counts.expectedToSend } }

    /// What the program expects; kept, without effect here.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { work.state.withLock { $0.counts.clientExpectsToSend } }
        set { work.state.withLock { $0.counts.clientExpectsToSend = newValue } }
    }
    /// What the program expects; kept, without effect here.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { work.state.withLock { $0.counts.clientExpectsToReceive } }
        set { work.state.withLock { $0.counts.clientExpectsToReceive = newValue } }
    }

    /// Sent and received bytes of all that are expected, -1 while that is not known; complete when the task has succeeded.
    /// Cancelling it cancels the task, pausing and resuming it suspend and resume the task (rule US-38).
    ///
    /// It changes where the session's calls come.
    open var progress: Progress {
        work.progress(
            cancel: { [weak self] in self?.cancel() }, pause: { [weak self] in self?.suspend() },
            resume: { [weak self] in self?.resume() })
    }

    // MARK: - Without effect here (rule US-15)

    /// Of background sessions only; kept, without effect here.
    open var earliestBeginDate: Date? {
        get { work.state.withLock { $0.earliestBeginDate } }
        set { work.state.withLock { $0.earliestBeginDate = newValue } }
    }

    /// The body is delivered as it comes, always; kept, without effect here.
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
    fileprivate init(_ standing: TaskLife.Standing) {
        switch standing {
        case .running: self = .running
        case .suspended: self = .suspended
        case .canceling: self = .canceling
        case .completed: self = .completed
        }
    }
}

/// The delegate's side of a task, as the task knows it.
protocol TaskDelegation: AnyObject, Sendable {
    /// The task was made that begins with `TaskAudience.begin()`.
    func belong(to task: URLSessionTask)

    /// The task's own; nil after the last call.
    var delegate: (any URLSessionTaskDelegate)? { get }

    /// - Returns: False: the task has begun, and keeps the one that it has.
    func setDelegate(_ delegate: (any URLSessionTaskDelegate)?) -> Bool

    /// Before the function returns that makes the task.
    func tellCreated(_ task: URLSessionTask)

    /// Only the program holds the task from here on, if it is a WebSocket that runs (rule WS-27). Any thread.
    func loosen()

    /// The task in the place of a WebSocket that the program has let go of; a WebSocket too.
    ///
    /// - Returns: Nil: it has ended, or its session holds it.
    func replacement(of work: TaskWork) -> URLSessionTask?
}

/// A task whose response comes as data.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable`: as its superclass.
}

/// A length that is not known.
public let NSURLSessionTransferSizeUnknown: Int64 = -1
