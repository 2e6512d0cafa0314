public import FoundationNetworking
public import RondoCore
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

    public func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {}

    public func download(_ download: URLDownload, didCreateDestination path: String) {}

    public func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {}

    public func downloadDidFinish(_ download: URLDownload) {}

    public func download(_ download: URLDownload, didFailWithError error: any Error) {}
}

/// Loads a URL into a file. It starts in `init`, on the calling thread's loop in the default mode.
///
/// The bytes are written as they come, so a file of any size takes little memory. The counterpart of Apple's
/// `NSURLDownload`; resuming a download is not there yet.
public final class URLDownload: NSObject, Sendable {
    private struct State {
        var destination: (path: String, allowOverwrite: Bool)?
        var deletesFileUponFailure = true
    }

    public let request: URLRequest
    private let state = Mutex(State())
    private let saver: DownloadSaver

    /// - Parameter delegate: An object that conforms to `URLDownloadDelegate`; retained until the end.
    public init(request: URLRequest, delegate: Any?) {
        self.request = request
        saver = DownloadSaver(delegate: delegate as? any URLDownloadDelegate)
        super.init()
        saver.begin(self)
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
    }

    private let delegate: (any URLDownloadDelegate)?
    /// Empty once the download is over, in whatever way.
    private let work = Mutex(Work())

    init(delegate: (any URLDownloadDelegate)?) {
        self.delegate = delegate
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

    func cancel(_ download: URLDownload) {
        let work = takeWork()
        work.connection?.cancel()
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
        guard let download else { return }
        delegate?.download(download, didReceive: response)
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
            let file = try DownloadFile(path: path, allowOverwrite: allowOverwrite)
            let isWanted = work.withLock { work in
                guard work.download != nil else { return false }
                work.file = file
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
        delegate?.download(download, didReceiveDataOfLength: data.count)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
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
        work.file?.discard(deleting: download.deletesFileUponFailure)
        delegate?.download(download, didFailWithError: error)
    }
}
