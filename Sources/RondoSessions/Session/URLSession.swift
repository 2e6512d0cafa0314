public import FoundationNetworking
internal import RondoConnections
public import RondoCore
internal import RondoMutex

/// Makes tasks that load URLs, with what it sets apart for them: cookies, cache, credentials, connections, a delegate.
///
/// Calls come as operations of the delegate queue, or, by the initialiser that names a run loop, on the thread of that loop
/// while it runs in the modes named: then the tasks stand still in other modes, and the servers have to wait.
///
/// Any thread may use a session. It lives as long as the program holds it or one of its tasks runs; its delegate is held
/// until it is invalidated or goes. The counterpart of Apple's class of that name, and not a subclass of Foundation's.
open class URLSession: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: all of it is behind the lock or immutable.

    private struct State {
        var delegate: SessionDelegateObject?
        var description: String?
    }

    /// The session of the process: global storages, no delegate, the connections that `URLConnection` has. Invalidation
    /// has no effect on it.
    open class var shared: URLSession { sharedSession }
    private static let sharedSession = URLSession(.default, nil, .queue(DelegateQueue(serialQueue())), isShared: true)

    let values: SessionValues
    let settings: LoadSettings
    let pool: ConnectionPool
    let driver: SessionDriver
    let table = SessionTasks()
    let isShared: Bool
    private let ownConfiguration: URLSessionConfiguration
    /// Of a session on a run loop it is never used.
    private let queue: OperationQueue
    private let state: Mutex<State>
    private let live = LiveObject(.session)

    // MARK: - Making

    /// A session without a delegate, whose handlers come on a serial queue of its own.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// - Parameters:
    ///   - delegate: Held until the session is invalidated or goes.
    ///   - queue: Where its methods and completion handlers are called. It should be a serial one: on another the calls of one
    ///     task come in order and one at a time, those of different tasks side by side (rule US-19). Nil: a serial queue of
    ///     the session's own.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.init(configuration, delegate, .queue(DelegateQueue(queue ?? Self.serialQueue())), isShared: false)
    }

    /// A session on a run loop: its tasks are driven by `runLoop` in `modes`, and every call to the delegate and every
    /// completion handler comes on that loop's thread in those modes, and at no other time (rules US-21 and US-22).
    ///
    /// - Parameter modes: `.common` stands for every common mode. Empty stands for the default mode, with a warning.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, runLoop: RunLoop,
        modes: [RunLoop.Mode] = [.default]
    ) {
        if modes.isEmpty {
            Log.sessions.warning("A session on a run loop without modes is in the default mode.")
        }
        var places: [LoopMode] = []
        for mode in modes.isEmpty ? [.default] : modes {
            let place = LoopMode(loop: runLoop, mode: mode)
            if !places.contains(place) { places.append(place) }
        }
        self.init(configuration, delegate, .loop(places), isShared: false)
    }

    private init(
        _ configuration: URLSessionConfiguration, _ delegate: (any URLSessionDelegate)?,
        _ driver: SessionDriver, isShared: Bool
    ) {
        self.isShared = isShared
        self.driver = driver
        // Foundation's `copy()` is an `Any`.
        ownConfiguration = configuration.copy() as? URLSessionConfiguration ?? .default
        values = ownConfiguration.values
        pool = isShared ? .shared : ConnectionPool(connectionsPerServer: values.connectionsPerHost)
        settings = values.settings(pool, countsRegisteredClasses: isShared)
        queue = driver.queue?.queue ?? OperationQueue()
        state = Mutex(State(delegate: delegate.map(SessionDelegateObject.init)))
        super.init()
    }

    deinit { if !isShared { pool.retire() } }

    private static func serialQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    // MARK: - What it was made with

    /// A copy: what is changed in it changes nothing here.
    open var configuration: URLSessionConfiguration {
        ownConfiguration.copy() as? URLSessionConfiguration ?? ownConfiguration
    }

    /// The queue of the session's calls. Of a session on a run loop it is one that Rondo never uses.
    open var delegateQueue: OperationQueue { queue }

    /// Nil once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate }?.base }

    /// The run loop that drives the session and makes its calls; nil: a queue makes them.
    public var runLoop: RunLoop? { driver.loop }

    /// The modes of `runLoop` in which it does; empty without one.
    public var modes: [RunLoop.Mode] {
        if case .loop(let places) = driver { places.map(\.mode) } else { [] }
    }

    /// A name for the program's own use, and for traces; nil at first.
    open var sessionDescription: String? {
        get { state.withLock { $0.description } }
        set { state.withLock { $0.description = newValue } }
    }

    var delegateObject: SessionDelegateObject? { state.withLock { $0.delegate } }

    /// The last call has returned.
    func letGoOfDelegate() {
        // Released without the lock.
        let delegate = state.withLock { state in state.delegate.take() }
        withExtendedLifetime(delegate) {}
    }

    // MARK: - Invalidation

    /// Makes no more tasks; those that were resumed finish, those that never were are cancelled. Then comes
    /// `urlSession(_:didBecomeInvalidWithError:)`, the last call. Returns at once (rule US-73).
    open func finishTasksAndInvalidate() { invalidate(cancelsAll: false) }

    /// The same, and cancels all tasks: each gets its last call before (rule US-74).
    open func invalidateAndCancel() { invalidate(cancelsAll: true) }

    // MARK: - Tasks

    // A task is made suspended, and does nothing before `resume()` (rule US-28). In a session that was invalidated it is born
    // completed, with `URLError.cancelled`, and a completion handler gets that (rule US-75).

    /// A task whose response is told to the delegate.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, .delegate) }

    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// A task that collects its response, up to 1 GiB.
    ///
    /// - Parameter completionHandler: Called once, where the session's calls come: with content and response, or with the
    ///   response as far as there is one and an error.
    open func dataTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(request, .data(completionHandler))
    }

    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        dataTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    // MARK: - Uploads

    // What is sent is the data, file or stream that is named here; a body of the request's own is not.

    /// A task that sends a file, a piece at a time, with the length that it has when the task begins. Where it has to be sent
    /// again it is read from its start. A file that cannot be read fails the task (rule US-59).
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL))
    }

    /// A task that sends `bodyData`, with its length.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData))
    }

    /// A task that sends a stream. The delegate gives it, by `urlSession(_:task:needNewBodyStream:)`, before each sending
    /// (rule US-60). It is sent in chunks, unless the request has a Content-Length.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUploadTask(request, .streamed)
    }

    /// Uploads cannot be resumed: the task fails with `URLError.unsupportedURL` when it is resumed (rule US-61).
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        makeUploadTask(nil, .rest(nil))
    }

    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .data(completionHandler))
    }

    /// - Parameter bodyData: Nil: no bytes.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(nil, .rest(nil), .data(completionHandler))
    }

    // MARK: - Downloads

    /// A task that saves its response, as it comes, in a temporary file (rule US-62).
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownloadTask(request) }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    /// A task that goes on with a download that was cancelled or has failed, where the server can; otherwise it begins anew
    /// (rule US-64).
    ///
    /// - Parameter resumeData: Of `cancel(byProducingResumeData:)`, or of the error. With others the task fails with
    ///   `URLError.unsupportedURL` when it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(resuming: resumeData, .delegate)
    }

    /// - Parameter completionHandler: Called once, where the session's calls come: with the file, which is removed when it
    ///   returns unless it was moved, or with an error.
    open func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(request, .ofRequest, .download(completionHandler))
    }

    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(resuming: resumeData, .download(completionHandler))
    }

    // MARK: - Lists and storages

    // Handlers come where the session's calls come, in order with them (rule US-80).

    /// The tasks that were resumed and have not ended, by their identifiers.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        driver.perform { [self] in completionHandler(table.all) }
    }

    /// The same, as data, upload and download tasks.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        driver.perform { [self] in
            let all = table.all
            completionHandler(
                all.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                all.compactMap { $0 as? URLSessionUploadTask },
                all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// Empties the configuration's cookies, cache and credentials, and does what `flush` does.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        let configuration = self.configuration
        configuration.urlCache?.removeAllCachedResponses()
        if let storage = configuration.httpCookieStorage {
            for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
        }
        if let storage = configuration.urlCredentialStorage {
            for (space, credentials) in storage.allCredentials {
                for credential in credentials.values { storage.remove(credential, for: space) }
            }
        }
        flush(completionHandler: completionHandler)
    }

    /// Writes what is kept to the disk, and has later requests go over new connections.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        pool.renew()
        driver.perform(completionHandler)
    }
}
