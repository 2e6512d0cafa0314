public import FoundationNetworking
internal import RondoConnections
public import RondoCore
internal import RondoMutex

/// Makes tasks that load URLs with a configuration, connections and a delegate of its own.
///
/// A session calls its delegate and completion handlers on a delegate queue. A session that was made with a
/// run loop calls them on that loop's thread instead, while the loop runs in the session's modes; in other
/// modes its tasks stand still and the servers wait (rules US-17 to US-22).
///
/// Any thread may use a session. A session lives as long as the program holds it or one of its tasks runs; it
/// holds its delegate until it is invalidated or deallocated (rules US-76 and US-77). The counterpart of
/// Apple's `URLSession`; it is not a subclass of FoundationNetworking's (rule US-4).
open class URLSession: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: every property is immutable or has its own lock.

    /// The session of the process: it has the global storages, no delegate, and shares connections with
    /// `URLConnection`. Invalidation has no effect on it (rule US-9).
    open class var shared: URLSession { sharedSession }

    let engine: SessionEngine
    let table = SessionTasks()
    let client: any SessionClient
    private let ownConfiguration: URLSessionConfiguration
    /// Never used in a session on a run loop.
    private let queue: DelegateQueue
    private let name = Mutex<String?>(nil)
    private let live = LiveObject(.session)

    init(
        _ configuration: URLSessionConfiguration, _ client: any SessionClient, _ schedule: SessionSchedule,
        isShared: Bool
    ) {
        // Foundation's `copy()` is an `Any`.
        ownConfiguration = configuration.copy() as? URLSessionConfiguration ?? .default
        engine = SessionEngine(ownConfiguration.values, schedule, isShared: isShared)
        self.client = client
        queue = schedule.queue ?? DelegateQueue()
        super.init()
    }

    /// Makes a session with the configuration `.default` and without a delegate. For classes that replace
    /// sessions in tests.
    @available(*, deprecated, message: "Use URLSession(configuration:), or .shared.")
    public override init() {
        queue = DelegateQueue()
        ownConfiguration = .default
        engine = SessionEngine(ownConfiguration.values, .queue(queue), isShared: false)
        client = Self.clientWithoutDelegate
        super.init()
    }

    deinit { if !engine.isShared { engine.pool.retire() } }

    /// Makes the session's tasks.
    var making: TaskMaking { TaskMaking(session: self) }

    // MARK: - Properties

    /// A copy of the configuration: changing it does not change the session (rule US-6).
    open var configuration: URLSessionConfiguration {
        ownConfiguration.copy() as? URLSessionConfiguration ?? ownConfiguration
    }

    /// The queue of the session's calls. A session on a run loop returns a queue that Rondo never uses.
    open var delegateQueue: OperationQueue { queue.exposedQueue }

    /// The session's delegate; nil without one, and once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { client.delegate }

    /// The run loop that drives the session and makes its calls; nil if a queue makes them.
    public var runLoop: RunLoop? { engine.schedule.loop }

    /// The modes of `runLoop` that the session is in; empty without a run loop.
    public var modes: [RunLoop.Mode] {
        if case .loop(let modes) = engine.schedule { modes.map(\.mode) } else { [] }
    }

    /// A name for the program's own use and for traces; nil at first (rule US-35).
    open var sessionDescription: String? {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }

    // MARK: - Invalidation

    /// Invalidates the session: it makes no more tasks, resumed tasks finish, and tasks that were never
    /// resumed are cancelled. The last call of the session is `urlSession(_:didBecomeInvalidWithError:)`.
    /// Returns at once (rule US-73).
    open func finishTasksAndInvalidate() { invalidate(cancelsAll: false) }

    /// Invalidates the session and cancels all its tasks. Each task gets its last call before that of the
    /// session, that of an open WebSocket within two seconds (rules US-74 and WS-17).
    open func invalidateAndCancel() { invalidate(cancelsAll: true) }

    // MARK: - Tasks

    // A task is made suspended, and does nothing before `resume()` (rule US-28). In an invalidated session a
    // new task is completed from the start, with `URLError.cancelled`, which a completion handler gets
    // (rule US-75).

    /// Makes a task that delivers the response to the delegate.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { making.data(request, .delegate) }

    /// Makes a task that loads `url` and delivers the response to the delegate.
    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// Makes a task that collects the response's body, of at most 1 GiB (rules US-43 and US-44).
    ///
    /// - Parameter completionHandler: Called once, on the delegate queue or the session's run loop: with
    ///   body and response, or with an error and the response if one arrived.
    open func dataTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        making.data(request, .data(completionHandler))
    }

    /// Makes a task that loads `url` and collects the response's body; see
    /// `dataTask(with:completionHandler:)`.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        dataTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    // MARK: - Uploads

    // The data, file or stream named here is the body; the request's own body is not sent.

    /// Makes a task that sends a file, piece by piece, with the length that the file has when the task
    /// begins. If the body must be sent again, the file is read from its start. A file that cannot be read
    /// fails the task (rule US-59).
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        making.upload(request, .file(fileURL))
    }

    /// Makes a task that sends `bodyData`, with its length (rule US-59).
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        making.upload(request, .data(bodyData))
    }

    /// Makes a task that sends a stream, which the delegate supplies by
    /// `urlSession(_:task:needNewBodyStream:)` before each sending (rule US-60). The body is sent in chunks
    /// unless the request has a Content-Length field.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        making.upload(request, .streamed)
    }

    /// Makes a task that fails with `URLError.unsupportedURL` when it is resumed: uploads cannot be resumed
    /// (rule US-61).
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        making.upload(nil, .rest(nil))
    }

    /// Makes a task that sends a file and collects the response; see `uploadTask(with:fromFile:)` and
    /// `dataTask(with:completionHandler:)`.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(request, .file(fileURL), .data(completionHandler))
    }

    /// Makes a task that sends `bodyData` and collects the response; see `dataTask(with:completionHandler:)`.
    ///
    /// - Parameter bodyData: Nil means an empty body.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    /// Makes a task that fails with `URLError.unsupportedURL` when it is resumed: uploads cannot be resumed
    /// (rule US-61).
    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(nil, .rest(nil), .data(completionHandler))
    }

    // MARK: - Downloads

    /// Makes a task that saves the response's body in a temporary file as it arrives (rule US-62).
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { making.download(request) }

    /// Makes a task that loads `url` into a temporary file (rule US-62).
    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    /// Makes a task that continues a download that was cancelled or failed, if the server can and the partial
    /// file is there; otherwise the task starts again (rule US-64).
    ///
    /// - Parameter resumeData: From `cancel(byProducingResumeData:)` or from the error of the failed task.
    ///   With other data the task fails with `URLError.unsupportedURL` when it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        making.download(resuming: resumeData, .delegate)
    }

    /// Makes a task that saves the response's body in a temporary file (rule US-62).
    ///
    /// - Parameter completionHandler: Called once, on the delegate queue or the session's run loop: with
    ///   the file, which is deleted when the handler returns unless the handler has moved it, or with an
    ///   error.
    open func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        making.download(request, .ofRequest, .download(completionHandler))
    }

    /// Makes a task that loads `url` into a temporary file; see `downloadTask(with:completionHandler:)`.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    /// Makes a task that continues a download; see `downloadTask(withResumeData:)` and
    /// `downloadTask(with:completionHandler:)`.
    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        making.download(resuming: resumeData, .download(completionHandler))
    }

    // MARK: - WebSockets and streams

    /// Makes a WebSocket task for a ws or wss URL; see `webSocketTask(with:)` for requests.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        webSocketTask(with: URLRequest(url: url))
    }

    /// Makes a WebSocket task for a ws or wss URL.
    ///
    /// - Parameter protocols: The subprotocols that are offered to the server, the preferred one first. If
    ///   one is no token, or is named twice, the task fails with `URLError.badURL` when it is resumed.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        making.webSocket(URLRequest(url: url), protocols: protocols)
    }

    /// Makes a WebSocket task for a GET request with a ws or wss URL. Its header fields are sent;
    /// Sec-WebSocket-Protocol names subprotocols to offer. With any other request the task fails with
    /// `URLError.unsupportedURL` when it is resumed (rule WS-1).
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        making.webSocket(request, protocols: [])
    }

    /// Makes a task for a TCP connection to a host. The host is looked up when the task is resumed
    /// (rule US-89).
    ///
    /// - Parameters:
    ///   - hostname: A name or an address.
    ///   - port: 1 to 65,535; with any other number the task fails with `URLError.badURL` when it is
    ///     resumed.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        making.stream(host: hostname, port: port)
    }

    // MARK: - Lists and storages

    // These handlers are called on the delegate queue or the session's run loop, in order with its other
    // calls (rule US-80).

    /// Passes the tasks that were resumed and have not ended, by their identifiers (rule US-79).
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        engine.handlers.call { [self] in completionHandler(table.all) }
    }

    /// Passes the same tasks, sorted into data, upload and download tasks.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        engine.handlers.call { [self] in
            let all = table.all
            completionHandler(
                all.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                all.compactMap { $0 as? URLSessionUploadTask },
                all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// Empties the configuration's cookie storage, cache and credential storage, the shared one with the file
    /// of `URLConnection.PermanentCredentials`, and then does what `flush` does (rule US-78).
    ///
    /// Later requests have none of the cookies. A thread removes them from the cookie storage, which takes
    /// Foundation some time: before the handler is called, the program may still see some of them there, and
    /// a cookie that the program sets there itself may be removed with them.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        LoadStorage.removeCookies(of: engine.settings)
        ownConfiguration.emptyStorages()
        flush(completionHandler: completionHandler)
    }

    /// Writes cookies, responses, credentials and HSTS hosts of the process to disk, on a thread of its own,
    /// and has later requests use new connections; connections in use finish (rule US-78).
    ///
    /// Storages write by themselves as well, usually within a second of a change; cookies later where
    /// Foundation takes long to write its file. Without a thread for it, `flush` leaves them to do that.
    /// - Parameter completionHandler: Called when that is written, where the session's calls are made, after
    ///   the handlers of lists, `reset` and `flush` that were asked for before (rule US-80).
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        engine.pool.renew()
        engine.handlers.flush(engine.settings, completionHandler)
    }
}
