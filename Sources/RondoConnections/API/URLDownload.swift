public import FoundationNetworking
public import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// The delegate of a `URLDownload`; all methods are optional.
///
/// They are called on the thread of the loop that the download is scheduled in, while that loop runs in one
/// of the download's modes, in the order of rule UC-68.
public protocol URLDownloadDelegate: NSObjectProtocol {
    func downloadDidBegin(_ download: URLDownload)

    /// Like `connection(_:willSend:redirectResponse:)`: nil refuses a redirect, whose own body is then saved.
    /// A download from resume data fails on it, and leaves the partial file as it is.
    func download(
        _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest?

    /// Whether stored credentials may answer challenges, and credentials that the delegate gives be stored.
    /// Called at most once, before anything is sent. By default, true.
    func downloadShouldUseCredentialStorage(_ download: URLDownload) -> Bool

    /// Whether the delegate wants challenges of this protection space; other challenges get the default
    /// handling. By default, false: a delegate without this method gets no challenges (rule UC-45, D22).
    func download(
        _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// The server, or a proxy, wants a credential, and neither the URL nor the credential storage has one
    /// that works. The download waits until the challenge's sender gets an answer, from any thread. By
    /// default the challenge gets the default handling.
    func download(_ download: URLDownload, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge that `download(_:didReceive:)` got was cancelled; the failure follows.
    func download(_ download: URLDownload, didCancel challenge: URLAuthenticationChallenge)

    func download(_ download: URLDownload, didReceive response: URLResponse)

    /// The content has a coding (Content-Encoding). Called once for each coding, the one that was applied
    /// last first.
    ///
    /// - Parameter encodingType: `application/gzip`, `application/zlib`, `application/x-brotli` or
    ///   `application/zstd`.
    /// - Returns: False to save the content in this coding and the remaining ones, which are then not asked
    ///   about. By default, true.
    func download(_ download: URLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool

    /// A download that was made from resume data continues; called in place of `didReceive` (rule UC-71).
    ///
    /// - Parameter startingByte: 0 if the download starts from the beginning: the file has changed, or the
    ///   server cannot continue.
    func download(
        _ download: URLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64)

    /// The place to call `setDestination(_:allowOverwrite:)`, unless it was called earlier. If it is never
    /// called, the file goes into the temporary directory under its suggested name.
    func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String)

    /// The file has been created; its path may differ from the one that was asked for.
    func download(_ download: URLDownload, didCreateDestination path: String)

    func download(_ download: URLDownload, didReceiveDataOfLength length: Int)

    /// The file is complete; the last call.
    func downloadDidFinish(_ download: URLDownload)

    /// The download has failed; the last call.
    func download(_ download: URLDownload, didFailWithError error: any Error)
}

extension URLDownloadDelegate {
    public func downloadDidBegin(_ download: URLDownload) {}

    public func download(
        _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest? {
        request
    }

    public func downloadShouldUseCredentialStorage(_ download: URLDownload) -> Bool { true }

    public func download(
        _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        download.noteDefault(of: .canAuthenticate, by: self)
        return false
    }

    public func download(_ download: URLDownload, didReceive challenge: URLAuthenticationChallenge) {
        challenge.sender?.performDefaultHandling(for: challenge)
    }

    public func download(_ download: URLDownload, didCancel challenge: URLAuthenticationChallenge) {}

    public func download(_ download: URLDownload, didReceive response: URLResponse) {}

    public func download(
        _ download: URLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String
    ) -> Bool {
        true
    }

    public func download(
        _ download: URLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64
    ) {}

    public func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {}

    public func download(_ download: URLDownload, didCreateDestination path: String) {}

    public func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {}

    public func downloadDidFinish(_ download: URLDownload) {}

    public func download(_ download: URLDownload, didFailWithError error: any Error) {}
}

/// Loads a URL into a file.
///
/// A download that starts at once is scheduled in the default mode of the loop of the thread that made it. To
/// choose loop, modes, label and settings, create it with `startImmediately: false`, set them, and `start()`
/// it: after the start they are fixed. While its loop runs in none of these modes, the download makes no
/// progress.
///
/// The bytes are written as they come, so a file of any size takes little memory. An error status is a
/// response like any other, and its body is saved, as in Apple's `NSURLDownload`, the counterpart of this
/// class: set `failsOnErrorStatus` if the file is not meant to hold the text of a 404. A download that was
/// made from resume data always fails on it, and leaves the partial file as it is.
public final class URLDownload: NSObject, Sendable {
    private struct State {
        var destination: (path: String, allowOverwrite: Bool)?
        var deletesFileUponFailure = true
        var resumption: DownloadResumption?
        var hasStarted = false
        var isCancelled = false
        var loop: RunLoop?
        var modes: [RunLoop.Mode] = []
        var label: String?
        var configuration: URLConnection.Configuration?
        var failsOnErrorStatus = false
    }

    public let request: URLRequest
    private let state = Mutex(State())
    private let saver: DownloadSaver

    /// - Parameters:
    ///   - delegate: An object that conforms to `URLDownloadDelegate`; retained until the end.
    ///   - startImmediately: If false, nothing happens before `start()`, and until then the download can be
    ///     scheduled and configured.
    public init(request: URLRequest, delegate: Any?, startImmediately: Bool = true) {
        self.request = request
        saver = DownloadSaver(delegate: delegate as? any URLDownloadDelegate, continuing: nil)
        super.init()
        DelegateMethodCheck.downloads.lookOnce(at: delegate)
        if startImmediately { start() }
    }

    /// Continues a download that was cancelled or failed, in the partial file that it has left at `path`.
    ///
    /// The fields of that download's request are sent again. A response that is neither the rest nor the
    /// whole fails the download (`.badServerResponse`) and leaves the file as it is.
    ///
    /// - Parameters:
    ///   - resumeData: The value of that download's `resumeData`.
    ///   - startImmediately: See `init(request:delegate:startImmediately:)`.
    /// - Returns: Nil if `resumeData` is not such a value.
    public init?(resumeData: Data, delegate: Any?, path: String, startImmediately: Bool = true) {
        guard var resumption = DownloadResumption(data: resumeData) else { return nil }
        // A file that has become shorter since cannot be continued.
        var status = stat()
        let size = stat(path, &status) == 0 ? Int64(status.st_size) : 0
        if size < resumption.bytes { resumption.bytes = 0 }
        request = resumption.bytes > 0 ? resumption.request : resumption.requestForWhole
        saver = DownloadSaver(delegate: delegate as? any URLDownloadDelegate, continuing: resumption)
        super.init()
        DelegateMethodCheck.downloads.lookOnce(at: delegate)
        setDestination(path, allowOverwrite: true)
        if startImmediately { start() }
    }

    // MARK: - Before the start

    /// Adds a loop and mode for the whole download. Several modes of one loop may be added; `.common` stands
    /// for every common mode. After the start, or for another loop than the first, it has no effect and logs
    /// a warning.
    public func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let complaint = state.withLock { state -> String? in
            if state.hasStarted { return "schedule(in:forMode:) after the start has no effect" }
            if let loop = state.loop, loop !== runLoop { return "a download is scheduled in one loop only" }
            state.loop = runLoop
            if !state.modes.contains(mode) { state.modes.append(mode) }
            return nil
        }
        warn(complaint)
    }

    /// Removes a mode. After the start it has no effect.
    public func unschedule(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let complaint = state.withLock { state -> String? in
            if state.hasStarted { return "unschedule(from:forMode:) after the start has no effect" }
            guard state.loop === runLoop else { return nil }
            state.modes.removeAll { $0 == mode }
            if state.modes.isEmpty { state.loop = nil }
            return nil
        }
        warn(complaint)
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Setting it after the start has no effect
    /// on those.
    public var label: String? {
        get { state.withLock { $0.label } }
        set { state.withLock { $0.label = newValue } }
    }

    /// Settings beyond the request. Setting it after the start has no effect.
    public var configuration: URLConnection.Configuration {
        get { state.withLock { $0.configuration } ?? URLConnection.Configuration() }
        set {
            let replaced = state.withLock { state -> URLConnection.Configuration? in
                defer { state.configuration = newValue }
                return state.configuration
            }
            // Released with no lock held: see `URLConnection.configuration`.
            withExtendedLifetime(replaced) {}
        }
    }

    /// Whether a status of 400 or more fails the download (`.badServerResponse`), after `didReceive` and
    /// before a file is created. False at first.
    public var failsOnErrorStatus: Bool {
        get { state.withLock { $0.failsOnErrorStatus } }
        set { state.withLock { $0.failsOnErrorStatus = newValue } }
    }

    /// Starts the download. Without a schedule it runs in the default mode of the calling thread's loop. A
    /// second call has no effect.
    public func start() {
        // The thread's loop is created when it is first used.
        let schedule = schedule ?? (RunLoop.currentLoop(), [.default])
        let isFirst = state.withLock { state in
            guard !state.hasStarted, !state.isCancelled else { return false }
            state.hasStarted = true
            if state.loop == nil { (state.loop, state.modes) = schedule }
            return true
        }
        guard isFirst else { return }
        saver.begin(self)
        // Another thread may have cancelled it before there was anything to cancel.
        if state.withLock({ $0.isCancelled }) { saver.cancel() }
    }

    /// The loop and modes, once the download has started or was scheduled.
    var schedule: (loop: RunLoop, modes: [RunLoop.Mode])? {
        state.withLock { state in state.loop.map { ($0, state.modes) } }
    }

    /// Applies the download's settings to its connection. Call it before the connection starts.
    func prepare(_ connection: URLConnection) {
        let state = state.withLock { $0 }
        if var configuration = state.configuration {
            configuration.beginsElsewhere = saver.leftOrigin
            connection.configuration = configuration
        }
        connection.label = state.label
        guard let loop = state.loop else { return }
        for mode in state.modes { connection.schedule(in: loop, forMode: mode) }
    }

    private func warn(_ complaint: String?) {
        guard let complaint else { return }
        Log.connections.warning("\(request.url?.absoluteString ?? "a download"): \(complaint)")
    }

    // MARK: - Running

    /// Why no callback has come, in a sentence and as a reason (see `DeliveryObstacle`). Any thread may ask.
    ///
    /// The reason is that of the connection which loads the file (see `URLConnection.whyNotDelivering`), and
    /// while none runs yet that of the download's modes.
    public var whyNotDelivering: DeliveryObstacle {
        let (hasStarted, isCancelled) = state.withLock { ($0.hasStarted, $0.isCancelled) }
        if isCancelled { return DeliveryObstacle.invalid }
        guard hasStarted else { return DeliveryObstacle.notStarted }
        return saver.obstacle(of: self) ?? DeliveryObstacle.invalid
    }

    /// The data with which a new download can continue where this one stopped (rule UC-71).
    ///
    /// Nil while the download runs, when it is complete, and after a failure or a cancel if the server cannot
    /// continue or the partial file is gone: `deletesFileUponFailure` has to be false, unless the download
    /// was itself made from resume data and has not touched the file. It contains the fields of the request,
    /// which may be secret. Any thread may use it.
    public var resumeData: Data? { state.withLock { $0.resumption }?.binaryPropertyList }

    func setResumption(_ resumption: DownloadResumption?) {
        state.withLock { $0.resumption = resumption }
    }

    /// Sets the path of the file. Only the first call counts, and only if it comes before the file is created
    /// (rule UC-69).
    ///
    /// - Parameter allowOverwrite: If false and there is such a file, a number is appended to the name.
    public func setDestination(_ path: String, allowOverwrite: Bool) {
        state.withLock { state in
            if state.destination == nil { state.destination = (path, allowOverwrite) }
        }
    }

    /// Whether an incomplete file is removed when the download fails or is cancelled. True at first. A
    /// download from resume data that ends before it has a usable response leaves the file in any case.
    public var deletesFileUponFailure: Bool {
        get { state.withLock { $0.deletesFileUponFailure } }
        set { state.withLock { $0.deletesFileUponFailure = newValue } }
    }

    /// Ends the download without a further callback (rule UC-70). Any thread may call it.
    public func cancel() {
        state.withLock { state in
            state.isCancelled = true
            // One that has not started never will.
            if !state.hasStarted { state.resumption = saver.continuable }
        }
        saver.cancel()
    }

    /// A method's default was called for `object`: the delegate has none of its own.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        saver.noteDefault(of: method, by: object)
    }

    var destination: (path: String, allowOverwrite: Bool)? { state.withLock { $0.destination } }
}
