internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The file for the body of a download (rule UC-67), and the logic to request the rest of it.
///
/// If a body is cut off, its rest is requested, provided that the server can prove that the body has not
/// changed (RFC 9110 §13.1.5). If the response is not that rest, the load fails with the original failure.
///
/// A session's download may also continue the partial file of an earlier one (rule US-64): then the first
/// response is the rest, or the whole, which replaces the file's contents.
final class DownloadTarget {
    /// The most requests for the rest of a body. Each must have brought bytes before another one is sent.
    static let maximumResumptions = 5

    /// The partial file of an earlier download, until the response has come.
    private var earlier: PartialDownload?
    /// The earlier download that the body continues; nil if it continues none.
    private var continued: PartialDownload?
    private var file: DownloadFile?
    private(set) var length: Int64 = 0
    private(set) var expectedLength: Int64 = 0
    /// The response to which the file's contents belong.
    private var response: URLResponse?
    private var resumptions = 0
    private var resumedAt: Int64 = 0

    /// - Parameter earlier: The partial file of an earlier download.
    init(_ earlier: PartialDownload? = nil) { self.earlier = earlier }

    /// Makes a new file for the body of `response`, or continues the file of an earlier download.
    ///
    /// - Parameter expecting: Bytes of content; negative: not known.
    func open(for response: URLResponse, expecting length: Int64) throws(LoadFailure) {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        let earlier = earlier.take()
        if let earlier, status == 206 {
            guard let offset = earlier.resumption.offset(of: response) else {
                throw .unusableResponse(status: 206)
            }
            file = earlier.file
            self.length = offset
            resumedAt = offset
            // The size is known, or the response would not be the rest.
            let resumption = earlier.resumption.completed(by: response)
            expectedLength = resumption.total ?? 0
            self.response = response
            continued = PartialDownload(earlier.file, resumption)
            return
        }
        continued = nil
        // An error page gets a file of its own and says nothing of the partial file, which a later download
        // may continue.
        if status >= 400 { _ = earlier?.file.keep(isAsked: false) }
        do throws(SystemError) {
            file = try DownloadFile()
        } catch {
            throw .file(
                .cannotCreateFile, sentence: "A file could not be created in \(NSTemporaryDirectory())", error
            )
        }
        self.length = 0
        expectedLength = max(0, length)
        self.response = response
    }

    func write(_ data: Data) throws(LoadFailure) {
        guard let file else { return }
        do throws(SystemError) {
            try file.write(data)
        } catch {
            throw .file(
                .cannotWriteToFile, sentence: "The file \(file.path) could not be written", error)
        }
        length += Int64(data.count)
    }

    /// Closes the file and returns it; nil if there is none.
    func close() throws(LoadFailure) -> DownloadFile? {
        guard let file = file.take() else { return nil }
        do throws(SystemError) {
            try file.close()
            return file
        } catch {
            throw .file(.cannotCloseFile, sentence: "The file \(file.path) could not be closed", error)
        }
    }

    /// Deletes the files.
    func discard() {
        file = nil
        earlier = nil
        continued = nil
    }

    /// Hands over the partial file, if the rest can be requested later.
    ///
    /// - Parameters:
    ///   - request: The last request that was sent.
    ///   - leftOrigin: Whether it went to another origin than the one that the settings were made for.
    func takePartial(of request: LoadRequest, leftOrigin: Bool) -> PartialDownload? {
        if let earlier = earlier.take() { return earlier }
        guard let file, var resumption = resumption(of: request), length < resumption.total ?? .max else {
            return nil
        }
        if continued == nil {
            resumption.leftOrigin = leftOrigin
            resumption.handlesCookies = request.handlesCookies
            resumption.fields = DownloadResumption.fieldsForWhole(request.fields)
        }
        self.file = nil
        return PartialDownload(file, resumption)
    }

    /// How the rest would be requested; nil if it cannot.
    private func resumption(of request: LoadRequest) -> DownloadResumption? {
        // If the program itself has requested a range, the body does not begin with the first byte of the
        // file.
        guard continued != nil || request.value.value(forHTTPHeaderField: "Range") == nil else { return nil }
        return DownloadResumption(
            response as? HTTPURLResponse, bytes: length, method: request.method,
            continuing: continued?.resumption)?
            .completed(total: expectedLength > 0 ? expectedLength : nil)
    }

    /// Whether the body is the rest of an earlier download.
    var continuesEarlier: Bool { continued != nil }

    // MARK: - Asking for the rest

    /// Makes a request for the missing bytes after `failure`, and counts it; nil if the load is to fail.
    func makeRequestForRest(
        after failure: LoadFailure, of request: LoadRequest
    ) -> (LoadRequest, RequestedRest)? {
        guard file != nil, failure.isLossOfConnection, length > resumedAt,
            resumptions < Self.maximumResumptions,
            let resumption = resumption(of: request)
        else { return nil }
        resumptions += 1
        resumedAt = length
        let rest = LoadRequest(resumption.askingForRest(request.value))
        return (rest, RequestedRest(resumption: resumption, failure: failure))
    }

    /// Whether the response with this head can be saved. It can if it is the rest of an earlier download, the
    /// whole file, or another response of the server, such as an error page; otherwise the whole file has to
    /// be requested.
    func canUse(_ head: ResponseHead, bodyLength: Int64?, from url: URL?) -> Bool {
        guard let earlier else { return true }
        switch head.status {
        case 206:
            guard let url, let response = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else {
                return false
            }
            return earlier.resumption.offset(of: response) != nil
        // The file has become shorter than the bytes that were received.
        case 416: return false
        default: return true
        }
    }

    /// Notes that the rest follows, with the size of the whole file, which the first response may not have
    /// announced.
    func noteRest(total: Int64) { expectedLength = total }

    /// Drops the partial file of an earlier download, because the whole is requested.
    func forgetEarlier() { earlier = nil }

    /// The failure if the rest has come and the file does not have the announced length.
    var restFailure: LoadFailure? {
        guard resumptions > 0 || continuesEarlier, file != nil, expectedLength > 0, length != expectedLength
        else { return nil }
        return .http(.truncatedBody(expected: expectedLength, received: length))
    }
}

extension LoadFailure {
    /// Whether the connection broke. After any other failure a new request would fail too.
    fileprivate var isLossOfConnection: Bool {
        switch self {
        case .channel(.broken): true
        case .http(let failure): failure.kind == .truncatedBody
        case .channel, .timedOut, .exceededTotalTime, .tooManyRedirects, .redirectWithoutLocation,
            .unsupportedRedirect, .canonicalRequestRefused, .unsupportedURL, .impossiblePort,
            .unusableResponse, .invalidDataURL, .unsupportedProxy, .noResponse, .program, .cancelled,
            .authenticationCancelled, .failedMutualAuthentication, .bodyStreamMissing, .unusableResumeData,
            .bodyStreamFailed, .bodyTooShort, .bodyTooLong, .file, .collectedTooMuch, .tooLongLine,
            .errorStatus, .content, .notInCache, .multipart, .noRunLoop, .upgrade:
            false
        }
    }
}
