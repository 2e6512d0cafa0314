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

    let work: TaskWork
    private let number: Int

    /// - Parameter identifier: Another than that of its work, for a task that takes another's place.
    init(_ work: TaskWork, identifier: Int? = nil) {
        self.work = work
        number = identifier ?? work.identifier
        super.init()
    }

    /// A task of no session, which never does anything; for classes that stand in for tasks in tests.
    @available(*, deprecated, message: "Tasks are made by a session.")
    public override init() {
        work = TaskWork()
        number = 0
        super.init()
    }

    // MARK: - What it is

    /// 1, 2, 3 … within the session (rule US-35).
    open var taskIdentifier: Int { number }

    /// The request as it was given.
    open var originalRequest: URLRequest? { work.originalRequest }

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
        get { work.state.withLock { $0.delegate }?.task }
        set {
            let object = newValue.map { SessionDelegateObject($0) }
            let (isLate, old) = work.state.withLock { state -> (Bool, SessionDelegateObject?) in
                if state.life.wasResumed { return (true, nil) }
                defer { state.delegate = object }
                return (false, state.delegate)
            }
            withExtendedLifetime(old) {}
            if isLate { Log.sessions.warning("A delegate that a task gets after resume() has no effect.") }
        }
    }

    // MARK: - Running

    open var state: State { work.state(of: self) }

    /// Begins or goes on, once it was called as often as `suspend()`. A new task has been suspended once.
    open func resume() { work.resume(self) }

    /// Nothing is sent or read for the task any more, no time passes for its timeouts, and nothing is told of it, until it is
    /// resumed (rule US-30).
    open func suspend() { work.suspend(self) }

    /// Ends the task: what is told of it still is the end, with `URLError.cancelled` (rule US-32).
    open func cancel() { work.cancel(self) }

    /// Where the task waits in line for a connection: 0…1, higher first. A hint.
    open var priority: Float {
        get { work.state.withLock { $0.priority } }
        set { work.setPriority(newValue) }
    }

    public static let defaultPriority: Float = 0.5
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
    open var progress: Progress { work.progress(of: self) }

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

/// A task whose response comes as data.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}

/// A length that is not known.
public let NSURLSessionTransferSizeUnknown: Int64 = -1
