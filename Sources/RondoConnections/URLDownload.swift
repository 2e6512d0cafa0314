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

    /// The place to call `setDestination(_:allowOverwrite:)`, if it was not called earlier. Without it the file
    /// goes into the temporary directory, by its suggested name.
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

    /// Where to save. The first call counts; one that comes before the file was created is in time (rule UC-69).
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
/// `@unchecked Sendable`: `file` and `connection` have locks; `download` changes in the connection's callbacks only, which come one
/// at a time on the loop of the download.
private final class DownloadSaver: NSObject, URLConnectionDataDelegate, @unchecked Sendable {
    private let delegate: (any URLDownloadDelegate)?
    private let file = Mutex<DownloadFile?>(nil)
    private var download: URLDownload?
    private let connection = Mutex<URLConnection?>(nil)

    init(delegate: (any URLDownloadDelegate)?) {
        self.delegate = delegate
    }

    func begin(_ download: URLDownload) {
        self.download = download
        let loop = RunLoop.currentLoop()
        guard
            let connection = URLConnection(request: download.request, delegate: self, startImmediately: false)
        else {
            let error = URLErrors.error(.unsupportedURL, url: download.request.url)
            return loop.perform { [self] in fail(error) }
        }
        self.connection.withLock { $0 = connection }
        loop.perform { [self] in
            if let download = self.download { delegate?.downloadDidBegin(download) }
        }
        connection.schedule(in: loop, forMode: .default)
        connection.start()
    }

    func cancel(_ download: URLDownload) {
        connection.withLock { $0 }?.cancel()
        discardFile(download)
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
        guard !connection.isCancelled else { return }
        let name = response.suggestedFilename ?? "unknown"
        if download.destination == nil {
            delegate?.download(download, decideDestinationWithSuggestedFilename: name)
        }
        guard !connection.isCancelled else { return }
        let fallback = (
            path: FileManager.default.temporaryDirectory.appendingPathComponent(name).path,
            allowOverwrite: false
        )
        let (path, allowOverwrite) = download.destination ?? fallback
        do throws(SystemError) {
            let made = try DownloadFile(path: path, allowOverwrite: allowOverwrite)
            let actual = made.path
            file.withLock { $0 = made }
            delegate?.download(download, didCreateDestination: actual)
        } catch {
            end(connection, .cannotCreateFile, "The file \(path) could not be created", error)
        }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        guard let download else { return }
        let failure = file.withLock { file -> SystemError? in
            do throws(SystemError) {
                try file?.write(data)
                return nil
            } catch {
                return error
            }
        }
        if let failure {
            return end(connection, .cannotWriteToFile, "The file could not be written", failure)
        }
        delegate?.download(download, didReceiveDataOfLength: data.count)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        let failure = file.withLock { file -> SystemError? in
            defer { file = nil }
            do throws(SystemError) {
                try file?.close()
                return nil
            } catch {
                return error
            }
        }
        if let failure { return end(connection, .cannotCloseFile, "The file could not be closed", failure) }
        guard let download else { return }
        delegate?.downloadDidFinish(download)
        letGo()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fail(error) }

    // MARK: Ending

    private func end(
        _ connection: URLConnection, _ code: URLError.Code, _ sentence: String, _ cause: SystemError
    ) {
        connection.cancel()
        fail(URLErrors.error(code, "\(sentence): \(cause).", url: connection.currentRequest.url))
    }

    private func fail(_ error: any Error) {
        guard let download else { return }
        discardFile(download)
        delegate?.download(download, didFailWithError: error)
        letGo()
    }

    private func discardFile(_ download: URLDownload) {
        let deletes = download.deletesFileUponFailure
        file.withLock { file in
            if deletes { file?.remove() }
            file = nil
        }
    }

    private func letGo() {
        download = nil
        connection.withLock { $0 = nil }
    }
}

/// A file that is being written; closed when released.
private final class DownloadFile: Sendable {
    let path: String
    private let descriptor: Mutex<Int32>

    /// Names tried with a number appended, before giving up.
    private static let maximumNumber = 10_000

    init(path: String, allowOverwrite: Bool) throws(SystemError) {
        let mode: mode_t = 0o666
        if allowOverwrite {
            descriptor = Mutex(
                try systemCall("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode) })
            self.path = path
            return
        }
        var candidate = path
        var number = 1
        while true {
            do throws(SystemError) {
                let opened = try systemCall("open") {
                    open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                }
                descriptor = Mutex(opened)
                self.path = candidate
                return
            } catch {
                guard error.code == EEXIST, number < Self.maximumNumber else { throw error }
                number += 1
                candidate = Self.numbered(path, number)
            }
        }
    }

    deinit { try? close() }  // nobody is left to be told

    /// "picture-2.png" for "picture.png".
    private static func numbered(_ path: String, _ number: Int) -> String {
        let url = URL(fileURLWithPath: path)
        let suffix = url.pathExtension.isEmpty ? "" : ".\(url.pathExtension)"
        let stem = url.deletingPathExtension().lastPathComponent
        return url.deletingLastPathComponent().appendingPathComponent("\(stem)-\(number)\(suffix)").path
    }

    func write(_ data: Data) throws(SystemError) {
        let descriptor = descriptor.withLock { $0 }
        // `Data` knows no typed throws.
        let result = data.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                var written = 0
                while written < bytes.count {
                    written += try systemCall("write") {
                        Foundation.write(descriptor, bytes.baseAddress! + written, bytes.count - written)
                    }
                }
            }
        }
        try result.get()
    }

    func close() throws(SystemError) {
        let descriptor = descriptor.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
        // Not retried on EINTR: Linux has given the number back already.
        if descriptor >= 0, Foundation.close(descriptor) == -1 { throw SystemError("close", code: errno) }
    }

    func remove() { unlink(path) }
}
