public import FoundationNetworking
public import RondoCore
internal import RondoHTTP
internal import RondoMutex

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

    /// Whether stored credentials may answer challenges, and given ones be stored. Asked at most once, before
    /// anything is sent. By default, true.
    func downloadShouldUseCredentialStorage(_ download: URLDownload) -> Bool

    /// Whether the delegate wants challenges of this protection space; those of others get the default handling.
    /// By default, false: a download asks no delegate that has not said so (rule UC-45, D22).
    func download(
        _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// The server, or a proxy, wants a credential, and neither the URL nor the credential storage holds what
    /// works. The download waits until the challenge's sender gets an answer, from any thread. By default it gets
    /// the default handling.
    func download(_ download: URLDownload, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge that `download(_:didReceive:)` got was cancelled; the failure follows.
    func download(_ download: URLDownload, didCancel challenge: URLAuthenticationChallenge)

    func download(_ download: URLDownload, didReceive response: URLResponse)

    /// The content comes in a coding (Content-Encoding); once for each, the one that was applied last first.
    ///
    /// - Parameter encodingType: `application/gzip`, `application/zlib`, `application/x-brotli` or
    ///   `application/zstd`.
    /// - Returns: False: the file is to hold it in this coding, and in those below, which are not asked about. By
    ///   default, true.
    func download(_ download: URLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool

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

    public func downloadShouldUseCredentialStorage(_ download: URLDownload) -> Bool { true }

    public func download(
        _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        false
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
        DelegateMethodCheck.downloads.lookOnce(at: delegate)
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
        DelegateMethodCheck.downloads.lookOnce(at: delegate)
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
