public import FoundationNetworking
public import RondoCore
internal import RondoHTTP
internal import Synchronization

/// What a `URLDownload` tells its delegate; all methods are optional.
///
/// Called on the thread of the loop that the download was made on, while it runs in the default mode, in the
/// order of rule UC-68.
public protocol URLDownloadDelegate: NSObjectProtocol {
    func downloadDidBegin(_ download: URLDownload)

    /// As `connection(_:willSend:redirectResponse:)`: nil refuses a redirect, whose own body is then saved.
    func download(
        _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest?

    func download(_ download: URLDownload, didReceive response: URLResponse)

    /// A download that was made from resume data goes on; in place of `didReceive` (rule UC-71).
    ///
    /// - Parameter startingByte: 0 if it has to start anew: the file has changed, or the server cannot continue.
    func download(
        _ download: URLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64)

    /// The place to call `setDestination(_:allowOverwrite:)`, if it was not called earlier. Without it the
    /// file goes into the temporary directory, by its suggested name.
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

    public func download(_ download: URLDownload, didReceive response: URLResponse) {}

    public func download(
        _ download: URLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64
    ) {}

    public func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {}

    public func download(_ download: URLDownload, didCreateDestination path: String) {}

    public func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {}

    public func downloadDidFinish(_ download: URLDownload) {}

    public func download(_ download: URLDownload, didFailWithError error: any Error) {}
}

/// Loads a URL into a file. It starts in `init`, on the calling thread's loop in the default mode.
///
/// The bytes are written as they come, so a file of any size takes little memory. The counterpart of Apple's
/// `NSURLDownload`.
public final class URLDownload: NSObject, Sendable {
    private struct State {
        var destination: (path: String, allowOverwrite: Bool)?
        var deletesFileUponFailure = true
        var resumption: DownloadResumption?
    }

    public let request: URLRequest
    private let state = Mutex(State())
    private let saver: DownloadSaver

    /// - Parameter delegate: An object that conforms to `URLDownloadDelegate`; retained until the end.
    public init(request: URLRequest, delegate: Any?) {
        self.request = request
        saver = DownloadSaver(delegate: delegate as? any URLDownloadDelegate, continuing: nil)
        super.init()
        saver.begin(self)
    }

    /// Goes on with a download that was cancelled or failed, in the file that it has left at `path`.
    ///
    /// - Parameter resumeData: What `resumeData` of that download has said.
    /// - Returns: Nil if these are no such data.
    public init?(resumeData: Data, delegate: Any?, path: String) {
        guard var resumption = DownloadResumption(data: resumeData) else { return nil }
        // What the file has lost since cannot be continued.
        var status = stat()
        let size = stat(path, &status) == 0 ? Int64(status.st_size) : 0
        if size < resumption.bytes { resumption.bytes = 0 }
        request = resumption.bytes > 0 ? resumption.request : URLRequest(url: resumption.url)
        saver = DownloadSaver(delegate: delegate as? any URLDownloadDelegate, continuing: resumption)
        super.init()
        setDestination(path, allowOverwrite: true)
        saver.begin(self)
    }

    /// What a new download needs to go on where this one stopped (rule UC-71).
    ///
    /// Nil while it runs, when it is complete, and after a failure or a cancel where the server cannot continue,
    /// or the partial file is gone: `deletesFileUponFailure` has to be false. Any thread.
    public var resumeData: Data? { state.withLock { $0.resumption }?.data }

    func setResumption(_ resumption: DownloadResumption?) {
        state.withLock { $0.resumption = $0.deletesFileUponFailure ? nil : resumption }
    }

    /// Where to save. The first call counts; one that comes before the file was created is in time (rule
    /// UC-69).
    ///
    /// - Parameter allowOverwrite: False: if there is such a file, a number is appended to the name.
    public func setDestination(_ path: String, allowOverwrite: Bool) {
        state.withLock { state in
            if state.destination == nil { state.destination = (path, allowOverwrite) }
        }
    }

    /// Whether a file that is not complete is removed when the download fails or is cancelled. True at first.
    public var deletesFileUponFailure: Bool {
        get { state.withLock { $0.deletesFileUponFailure } }
        set { state.withLock { $0.deletesFileUponFailure = newValue } }
    }

    /// Ends the download without a further callback (rule UC-70). Any thread.
    public func cancel() { saver.cancel(self) }

    var destination: (path: String, allowOverwrite: Bool)? { state.withLock { $0.destination } }
}

/// The connection's delegate: writes the body and tells the download's delegate.
///
/// `@unchecked Sendable`: `work` has a lock; `delegate` never changes, and is called in the connection's
/// callbacks only, which come one at a time on the loop of the download.
private final class DownloadSaver: NSObject, URLConnectionDataDelegate, @unchecked Sendable {
    private struct Work {
        var download: URLDownload?
        var connection: URLConnection?
        var file: DownloadFile?
        var response: HTTPURLResponse?
        /// Bytes in the file.
        var bytes: Int64 = 0
        /// Of the whole, where the response is the rest of it and somebody has said.
        var total: Int64?

        var resumption: DownloadResumption? {
            guard file != nil, let response, bytes <= total ?? .max else { return nil }
            return DownloadResumption(response, bytes: bytes, method: download?.request.httpMethod ?? "GET")
        }
    }

    private let continuing: DownloadResumption?
    private let delegate: (any URLDownloadDelegate)?
    /// Empty once the download is over, in whatever way.
    private let work = Mutex(Work())

    init(delegate: (any URLDownloadDelegate)?, continuing: DownloadResumption?) {
        self.delegate = delegate
        self.continuing = continuing
    }

    /// The download, until it is over.
    private var download: URLDownload? { work.withLock { $0.download } }

    func begin(_ download: URLDownload) {
        let connection = URLConnection(request: download.request, delegate: self, startImmediately: false)
        work.withLock { $0 = Work(download: download, connection: connection) }
        let loop = RunLoop.currentLoop()
        guard let connection else {
            let error = URLErrors.error(.unsupportedURL, url: download.request.url)
            return loop.perform { [self] in fail(error) }
        }
        loop.perform { [self] in
            if let download = self.download { delegate?.downloadDidBegin(download) }
        }
        connection.schedule(in: loop, forMode: .default)
        connection.start()
    }

    /// The server does not continue: the whole once more.
    private func startAnew(_ connection: URLConnection, _ resumption: DownloadResumption) {
        connection.cancel()
        let request = URLRequest(url: resumption.url)
        guard let next = URLConnection(request: request, delegate: Anew(self), startImmediately: false) else {
            return fail(URLErrors.error(.unsupportedURL, url: resumption.url))
        }
        let isWanted = work.withLock { work in
            if work.download != nil { work.connection = next }
            return work.download != nil
        }
        guard isWanted else { return }
        next.schedule(in: RunLoop.currentLoop(), forMode: .default)
        next.start()
    }

    /// Hands on what the second connection says, whose response is a whole.
    private final class Anew: NSObject, URLConnectionDataDelegate {
        private let saver: DownloadSaver

        init(_ saver: DownloadSaver) { self.saver = saver }

        func connection(
            _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
        ) -> URLRequest? {
            saver.connection(connection, willSend: request, redirectResponse: response)
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            saver.receive(response, from: 0)
        }

        func connection(_ connection: URLConnection, didReceive data: Data) {
            saver.connection(connection, didReceive: data)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            saver.connectionDidFinishLoading(connection)
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) { saver.fail(error) }
    }

    func cancel(_ download: URLDownload) {
        let work = takeWork()
        work.connection?.cancel()
        download.setResumption(work.resumption)
        work.file?.discard(deleting: download.deletesFileUponFailure)
    }

    /// The download is over: whoever comes later finds nothing. What is let go is released by the caller.
    private func takeWork() -> Work {
        work.withLock { work in
            defer { work = Work() }
            return work
        }
    }

    // MARK: The connection's delegate

    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        guard let delegate, let download else { return request }
        return delegate.download(download, willSend: request, redirectResponse: response)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        guard let continuing else { return receive(response, from: nil) }
        // A part that is not the one asked for is of no use, nor is a 416: from the start, then.
        guard let offset = continuing.bytes > 0 ? continuing.offset(of: response) : 0 else {
            return startAnew(connection, continuing)
        }
        receive(response, from: offset)
    }

    /// - Parameter resumedFrom: Nil for a download that was not begun before.
    private func receive(_ response: URLResponse, from resumedFrom: Int64?) {
        guard let download else { return }
        let offset = resumedFrom ?? 0
        if let resumedFrom {
            delegate?.download(download, willResumeWith: response, fromByte: resumedFrom)
        } else {
            delegate?.download(download, didReceive: response)
        }
        let name = response.suggestedFilename ?? "unknown"
        if download.destination == nil, self.download != nil {
            delegate?.download(download, decideDestinationWithSuggestedFilename: name)
        }
        guard self.download != nil else { return }
        let fallback = (
            path: FileManager.default.temporaryDirectory.appendingPathComponent(name).path,
            allowOverwrite: false
        )
        let (path, allowOverwrite) = download.destination ?? fallback
        do throws(SystemError) {
            let file =
                offset > 0
                ? try DownloadFile(continuing: path, at: offset)
                : try DownloadFile(path: path, allowOverwrite: allowOverwrite)
            let isWanted = work.withLock { work in
                guard work.download != nil else { return false }
                work.file = file
                work.response = response as? HTTPURLResponse
                work.bytes = offset
                work.total = offset > 0 ? continuing?.total : nil
                return true
            }
            // Cancelled from another thread while the file was made.
            guard isWanted else { return file.discard(deleting: download.deletesFileUponFailure) }
            delegate?.download(download, didCreateDestination: file.path)
        } catch {
            end(.cannotCreateFile, "The file \(path) could not be created", error)
        }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        guard let download, let file = work.withLock({ $0.file }) else { return }
        do throws(SystemError) {
            try file.write(data)
        } catch {
            return end(.cannotWriteToFile, "The file \(file.path) could not be written", error)
        }
        work.withLock { $0.bytes += Int64(data.count) }
        delegate?.download(download, didReceiveDataOfLength: data.count)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        let (total, bytes) = work.withLock { ($0.total, $0.bytes) }
        if let total, bytes != total {
            let failure = LoadFailure.http(.peer(.truncatedBody(expected: total, received: bytes)))
            return fail(URLErrors.error(failure, url: connection.currentRequest.url))
        }
        if let file = work.withLock({ $0.file }) {
            do throws(SystemError) {
                try file.close()
            } catch {
                return end(.cannotCloseFile, "The file \(file.path) could not be closed", error)
            }
        }
        guard let download = takeWork().download else { return }
        delegate?.downloadDidFinish(download)
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fail(error) }

    // MARK: Ending

    private func end(_ code: URLError.Code, _ sentence: String, _ cause: SystemError) {
        guard let connection = work.withLock({ $0.connection }) else { return }
        connection.cancel()
        fail(URLErrors.error(code, "\(sentence): \(cause).", url: connection.currentRequest.url))
    }

    private func fail(_ error: any Error) {
        let work = takeWork()
        guard let download = work.download else { return }
        download.setResumption(work.resumption)
        work.file?.discard(deleting: download.deletesFileUponFailure)
        delegate?.download(download, didFailWithError: error)
    }
}
