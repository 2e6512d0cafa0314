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

    /// The session of the process: global storages, no delegate, the connections that `URLConnection` has. Invalidation
    /// has no effect on it.
    open class var shared: URLSession { sharedSession }

    let engine: SessionEngine
    let table = SessionTasks()
    let audience: any SessionAudience
    private let ownConfiguration: URLSessionConfiguration
    /// Of a session on a run loop it is never used.
    private let queue: DelegateQueue
    private let name = Mutex<String?>(nil)
    private let live = LiveObject(.session)

    init(
        _ configuration: URLSessionConfiguration, _ audience: any SessionAudience, _ driver: SessionDriver,
        isShared: Bool
    ) {
        // Foundation's `copy()` is an `Any`.
        ownConfiguration = configuration.copy() as? URLSessionConfiguration ?? .default
        engine = SessionEngine(ownConfiguration.values, driver, isShared: isShared)
        self.audience = audience
        queue = driver.queue ?? DelegateQueue()
        super.init()
    }

    deinit { if !engine.isShared { engine.pool.retire() } }

    /// Makes its tasks.
    var making: TaskMaking { TaskMaking(session: self) }

    // MARK: - What it was made with

    /// A copy: what is changed in it changes nothing here.
    open var configuration: URLSessionConfiguration {
        ownConfiguration.copy() as? URLSessionConfiguration ?? ownConfiguration
    }

    /// The queue of the session's calls. Of a session on a run loop it is one that Rondo never uses.
    open var delegateQueue: OperationQueue { queue.seenQueue }

    /// Nil once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { audience.delegate }

    /// The run loop that drives the session and makes its calls; nil: a queue makes them.
    public var runLoop: RunLoop? { engine.driver.loop }

    /// The modes of `runLoop` in which it does; empty without one.
    public var modes: [RunLoop.Mode] {
        if case .loop(let places) = engine.driver { places.map(\.mode) } else { [] }
    }

    /// A name for the program's own use, and for traces; nil at first.
    open var sessionDescription: String? {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
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
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { making.data(request, .delegate) }

    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// A task that collects its response, up to 1 GiB.
    ///
    /// - Parameter completionHandler: Called once, where the session's calls come: with content and response, or with the
    ///   response as far as there is one and an error.
    open func dataTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        making.data(request, .data(completionHandler))
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
        making.upload(request, .file(fileURL))
    }

    /// A task that sends `bodyData`, with its length.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        making.upload(request, .data(bodyData))
    }

    /// A task that sends a stream. The delegate gives it, by `urlSession(_:task:needNewBodyStream:)`, before each sending
    /// (rule US-60). It is sent in chunks, unless the request has a Content-Length.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        making.upload(request, .streamed)
    }

    /// Uploads cannot be resumed: the task fails with `URLError.unsupportedURL` when it is resumed (rule US-61).
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        making.upload(nil, .rest(nil))
    }

    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(request, .file(fileURL), .data(completionHandler))
    }

    /// - Parameter bodyData: Nil: no bytes.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        making.upload(nil, .rest(nil), .data(completionHandler))
    }

    // MARK: - Downloads

    /// A task that saves its response, as it comes, in a temporary file (rule US-62).
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { making.download(request) }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    /// A task that goes on with a download that was cancelled or has failed, where the server can; otherwise it begins anew
    /// (rule US-64).
    ///
    /// - Parameter resumeData: Of `cancel(byProducingResumeData:)`, or of the error. With others the task fails with
    ///   `URLError.unsupportedURL` when it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        making.download(resuming: resumeData, .delegate)
    }

    /// - Parameter completionHandler: Called once, where the session's calls come: with the file, which is removed when it
    ///   returns unless it was moved, or with an error.
    open func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        making.download(request, .ofRequest, .download(completionHandler))
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
        making.download(resuming: resumeData, .download(completionHandler))
    }

    // MARK: - Lists and storages

    // Handlers come where the session's calls come, in order with them (rule US-80).

    /// The tasks that were resumed and have not ended, by their identifiers.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        engine.driver.perform { [self] in completionHandler(table.all) }
    }

    /// The same, as data, upload and download tasks.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        engine.driver.perform { [self] in
            let all = table.all
            completionHandler(
                all.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                all.compactMap { $0 as? URLSessionUploadTask },
                all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// Empties the configuration's cookies, cache and credentials, and does what `flush` does.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        ownConfiguration.emptyStorages()
        flush(completionHandler: completionHandler)
    }

    /// Writes what is kept to the disk, and has later requests go over new connections.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        engine.pool.renew()
        engine.driver.perform(completionHandler)
    }
}
