internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// The delegate of a download's connection: writes the body to a file and tells the download's delegate.
///
/// `@unchecked Sendable`: `work` has a lock; `delegate` never changes, and is called in the connection's
/// callbacks only, which come one at a time on the loop of the download.
final class DownloadSaver: NSObject, URLConnectionDataDelegate, @unchecked Sendable {
    private struct Work {
        var download: URLDownload?
        var connection: URLConnection?
        var file: DownloadFile?
        var response: HTTPURLResponse?
        /// Bytes in the file.
        var bytes: Int64 = 0
        /// The server did not continue the old download: the coming response has the whole body.
        var isAnew = false
        /// The delegate's answer about the credential storage; nil until it was asked.
        var usesCredentialStorage: Bool?
        /// How the body continues that of an earlier download; nil if it does not.
        var continued: DownloadResumption?
        /// Whether the download has ended; then all else is empty.
        var isOver = false

        /// The size of the whole file, if the body is the rest of it and the size is known.
        var total: Int64? { continued?.total }

        var resumption: DownloadResumption? {
            guard bytes <= total ?? .max else { return nil }
            return DownloadResumption(
                response, bytes: bytes, method: download?.request.httpMethod ?? "GET", continuing: continued)
        }
    }

    private let continuing: DownloadResumption?
    private let delegate: (any URLDownloadDelegate)?
    /// The methods that are known to be defaults: of the delegate's class, or of downloads without a
    /// delegate.
    private let defaults: DelegateDefaults

    /// A download without a delegate leaves all of TLS to the settings.
    private static let defaultsWithoutDelegate = DelegateDefaults.leavingTLSToSettings()
    /// By the classes of the delegates of all downloads, of which a program has a few.
    private static let defaultsOfClasses = Mutex<[ObjectIdentifier: DelegateDefaults]>([:])

    private static func defaults(of type: any URLDownloadDelegate.Type) -> DelegateDefaults {
        defaultsOfClasses.withLock { known in
            if let found = known[ObjectIdentifier(type)] { return found }
            let new = DelegateDefaults()
            known[ObjectIdentifier(type)] = new
            return new
        }
    }

    /// Empty but for `isOver` once the download has ended, for whatever reason.
    private let work = Mutex(Work())

    init(delegate: (any URLDownloadDelegate)?, continuing: DownloadResumption?) {
        self.delegate = delegate
        self.continuing = continuing
        defaults =
            delegate.map { Self.defaults(of: type(of: $0)) } ?? Self.defaultsWithoutDelegate
    }

    /// Whether redirects have led the earlier download to another origin than the one that its configuration
    /// was made for.
    var leftOrigin: Bool { continuing?.leftOrigin ?? false }

    /// The download, until it is over.
    private var download: URLDownload? { work.withLock { $0.download } }

    /// Why `download`, which has started, makes no callback; nil after its end. Any thread may ask.
    func obstacle(of download: URLDownload) -> DeliveryObstacle? {
        let connection = work.withLock { $0.connection }
        if let connection, case .running = connection.publicState {
            let found = connection.whyNotDelivering
            // The connection may have ended since.
            if found.reason != .invalid { return found }
        }
        // Asked last: the download may have ended together with its connection.
        let isOver = work.withLock { $0.isOver }
        guard !isOver, let (loop, modes) = download.schedule else { return nil }
        // No connection runs: another thread is about to start one, perhaps in place of one that was
        // cancelled, or there is none for the URL, and the failure waits for one of the modes.
        return DeliveryObstacle(modes: modes.map { (loop, $0) })
    }

    func begin(_ download: URLDownload) {
        let connection = URLConnection(request: download.request, delegate: self, startImmediately: false)
        work.withLock { $0 = Work(download: download, connection: connection) }
        guard let (loop, modes) = download.schedule else { return }
        guard let connection else {
            let error = URLErrors.error(.unsupportedURL, url: download.request.url)
            return loop.perform(inModes: modes) { [self] in
                fail(error)
                // If the run had only this block to do, it ends now (rule UC-16); without the wake-up it
                // would sleep first (RL-32).
                loop.wakeUp()
            }
        }
        loop.perform(inModes: modes) { [self] in
            guard let download = self.download else { return loop.wakeUp() }
            delegate?.downloadDidBegin(download)
        }
        connection.setDefaults(defaults)
        download.prepare(connection)
        connection.start()
    }

    /// Loads the whole file again, because the server does not continue the old download.
    private func startAnew(_ connection: URLConnection, _ resumption: DownloadResumption) {
        connection.cancel()
        let request = resumption.requestForWhole
        guard let next = URLConnection(request: request, delegate: self, startImmediately: false) else {
            return fail(URLErrors.error(.unsupportedURL, url: resumption.url))
        }
        let download = work.withLock { work in
            guard work.download != nil else { return URLDownload?.none }
            work.connection = next
            work.isAnew = true
            return work.download
        }
        guard let download else { return }
        next.setDefaults(defaults)
        download.prepare(next)
        next.start()
    }

    /// Notes that the default of `method` was called for `object`: the download's delegate, or an object that
    /// the delegate forwards to.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        if delegate === object { defaults.insert(method) }
    }

    func cancel() {
        let work = takeWork()
        work.connection?.cancel()
        leave(work)
    }

    /// Removes the partial file, or leaves it and says how a later download can go on.
    private func leave(_ work: Work) {
        guard let download = work.download else { return }
        let deletes = work.file != nil && download.deletesFileUponFailure
        download.setResumption(deletes ? nil : resumption(of: work))
        work.file?.discard(deleting: deletes)
    }

    /// The earlier download, if its partial file has bytes.
    var continuable: DownloadResumption? { continuing.flatMap { $0.bytes > 0 ? $0 : nil } }

    /// How a later download can go on; nil if it cannot.
    private func resumption(of work: Work) -> DownloadResumption? {
        // The partial file is as the earlier download has left it.
        if work.file == nil { return continuable }
        guard var resumption = work.resumption else { return nil }
        guard work.continued == nil, let first = work.download?.request else { return resumption }
        resumption.handlesCookies = first.httpShouldHandleCookies
        // Redirects to another origin have removed what was meant for the first one.
        let fields = work.connection?.currentRequest.allHTTPHeaderFields
        resumption.fields = fields.map(DownloadResumption.fieldsForWhole)
        // The first URL as it was sent: HSTS may have made it an https URL.
        if let first = CanonicalRequest.of(first)?.url {
            resumption.leftOrigin = leftOrigin || !Redirect.areSameOrigin(first, resumption.url)
        }
        return resumption
    }

    /// Takes the work and thereby ends the download: a later call finds nothing. The caller releases the
    /// result outside of the lock.
    private func takeWork() -> Work {
        work.withLock { work in
            defer { work = Work(isOver: true) }
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

    func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool {
        guard let delegate, let download else { return true }
        if let said = work.withLock({ $0.usesCredentialStorage }) { return said }
        let uses = delegate.downloadShouldUseCredentialStorage(download)
        work.withLock { $0.usesCredentialStorage = uses }
        return uses
    }

    func connection(
        _ connection: URLConnection,
        canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        guard let delegate, let download else { return false }
        return delegate.download(download, canAuthenticateAgainstProtectionSpace: protectionSpace)
    }

    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        guard let delegate, let download else {
            challenge.sender?.performDefaultHandling(for: challenge)
            return
        }
        delegate.download(download, didReceive: challenge)
    }

    func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge) {
        guard let delegate, let download else { return }
        delegate.download(download, didCancel: challenge)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        guard let continuing else { return receive(connection, response, from: nil) }
        let asksForRest = continuing.bytes > 0 && !work.withLock { $0.isAnew }
        switch (response as? HTTPURLResponse)?.statusCode {
        // 203: the whole, which a proxy has transformed (RFC 9110 §15.3.4).
        case nil, 200, 203: receive(connection, response, from: 0)
        case 206 where asksForRest, 416 where asksForRest:
            // A part that is not the requested one, or a 416, is of no use: start from the beginning.
            guard let offset = continuing.offset(of: response) else {
                return startAnew(connection, continuing)
            }
            receive(connection, response, from: offset)
        // Anything else is neither the rest nor the whole, and must not replace what the file holds.
        case let status?: refuse(status, connection)
        }
    }

    /// - Parameter resumedFrom: Nil for a download that does not continue an earlier one.
    private func receive(_ connection: URLConnection, _ response: URLResponse, from resumedFrom: Int64?) {
        guard let download, announce(response, of: download, by: connection, from: resumedFrom) else {
            return
        }
        if let file = work.withLock({ $0.file }) { return saveAnew(response, in: file) }
        askAboutCodings(of: connection, download)
        guard let (path, allowOverwrite) = chooseDestination(of: download, for: response) else { return }
        createFile(
            at: path, allowOverwrite: allowOverwrite, of: download, for: response, from: resumedFrom ?? 0)
    }

    /// Tells the delegate of the response.
    ///
    /// - Returns: False if the download has ended because of the response's status.
    private func announce(
        _ response: URLResponse, of download: URLDownload, by connection: URLConnection,
        from resumedFrom: Int64?
    ) -> Bool {
        if let resumedFrom {
            delegate?.download(download, willResumeWith: response, fromByte: resumedFrom)
        } else {
            delegate?.download(download, didReceive: response)
        }
        guard download.failsOnErrorStatus, let status = (response as? HTTPURLResponse)?.statusCode,
            status >= 400
        else { return true }
        // The delegate may have cancelled the download.
        if self.download != nil { refuse(status, connection) }
        return false
    }

    /// Has the delegate choose the file, if the program has not set it.
    ///
    /// - Returns: Nil if the download has been cancelled.
    private func chooseDestination(
        of download: URLDownload, for response: URLResponse
    ) -> (path: String, allowOverwrite: Bool)? {
        // The response may come from a protocol of the program, and Foundation takes the name from it
        // unchecked.
        let name = response.suggestedFilename.flatMap(SuggestedFilename.harmless) ?? "unknown"
        if download.destination == nil, self.download != nil {
            delegate?.download(download, decideDestinationWithSuggestedFilename: name)
        }
        guard self.download != nil else { return nil }
        let fallback = (
            path: FileManager.default.temporaryDirectory.appendingPathComponent(name).path,
            allowOverwrite: false
        )
        return download.destination ?? fallback
    }

    /// Creates the file, or opens that of the earlier download, and tells the delegate.
    private func createFile(
        at path: String, allowOverwrite: Bool, of download: URLDownload, for response: URLResponse,
        from offset: Int64
    ) {
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
                work.continued = offset > 0 ? continuing?.completed(by: response) : nil
                return true
            }
            // The download may have been cancelled from another thread while the file was created.
            guard isWanted else {
                let deletes = download.deletesFileUponFailure
                // The thread that cancelled kept resumption data for the old file, which is deleted here or
                // was begun anew.
                if deletes || offset == 0 { download.setResumption(nil) }
                return file.discard(deleting: deletes)
            }
            delegate?.download(download, didCreateDestination: file.path)
        } catch {
            end(.cannotCreateFile, "The file \(path) could not be created", error)
        }
    }

    /// Receives a part of a body that replaces the part before it (rule UC-22), in the file too.
    private func saveAnew(_ response: URLResponse, in file: DownloadFile) {
        do throws(SystemError) {
            let anew = try DownloadFile(continuing: file.path, at: 0)
            work.withLock { work in
                guard work.download != nil else { return }
                work.file = anew
                work.response = response as? HTTPURLResponse
                work.bytes = 0
                work.continued = nil
            }
        } catch {
            end(.cannotWriteToFile, "The file \(file.path) could not be written", error)
        }
    }

    private func askAboutCodings(of connection: URLConnection, _ download: URLDownload) {
        guard let delegate else { return }
        let codings = connection.contentCodings
        for (undone, coding) in codings.reversed().enumerated() where self.download != nil {
            if delegate.download(download, shouldDecodeSourceDataOfMIMEType: coding.mediaType) { continue }
            return connection.undoCodings(undone)
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
            let failure = LoadFailure.http(.truncatedBody(expected: total, received: bytes))
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
        fail(URLErrors.error(.file(code, sentence: sentence, cause), url: connection.currentRequest.url))
    }

    private func refuse(_ status: Int, _ connection: URLConnection) {
        connection.cancel()
        fail(URLErrors.error(.errorStatus(status), url: connection.currentRequest.url))
    }

    private func fail(_ error: any Error) {
        let work = takeWork()
        guard let download = work.download else { return }
        leave(work)
        delegate?.download(download, didFailWithError: error)
    }
}

extension ContentCoding {
    /// The media type of a file in this coding. (None is registered for Brotli.)
    fileprivate var mediaType: String {
        switch self {
        case .gzip: "application/gzip"
        case .deflate: "application/zlib"
        case .brotli: "application/x-brotli"
        case .zstd: "application/zstd"
        }
    }
}
