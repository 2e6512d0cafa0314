internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// Takes the bytes of a response as they arrive, and returns its content piece by piece: decoded, divided
/// into the parts of a multipart response, or written to the file of a download.
struct ContentReader {
    enum Piece {
        case nothing
        case data(Data)
        /// These bytes have been written to the file: in this piece, so far, and in total.
        case written(Data, total: Int64, expected: Int64)
        /// The next part of a multipart begins, with this head (rule UC-22).
        case part(ResponseHead)
        case end
    }

    /// The file of a download; nil if the load is none.
    private(set) var download: DownloadTarget?
    /// Decodes or divides the body; nil if the body is the content as it is.
    private var pipe: ContentPipe?
    /// The head of a multipart response; nil if the body has no parts.
    private var headOfParts: ResponseHead?
    /// Whether the content comes without the codings that its response names, like content of the cache and
    /// of a `URLProtocol`.
    private var isDecoded = false
    /// Bytes that came without a pipe and were not read yet.
    private var waiting: Data?
    /// Whether the end has come, or the pipe may make another piece from the bytes that it has.
    private var hasPending = false

    /// - Parameter earlier: The partial file of an earlier download.
    init(isDownload: Bool, continuing earlier: PartialDownload?) {
        download = isDownload ? DownloadTarget(earlier) : nil
    }

    /// Prepares for the content of `incoming`, from which `response` was made. A part of a multipart is such
    /// a response, too.
    ///
    /// - Parameter settings: These say whether the body is decoded and divided, or treated as the content
    ///   whatever its head says.
    mutating func begin(
        _ incoming: IncomingResponse, _ response: URLResponse, method: String, _ settings: LoadSettings
    ) throws(LoadFailure) {
        if case .http = incoming { discard() }
        if settings.values.decodesContent, case .http(let head, _) = incoming {
            do throws(ContentDecodingError) {
                pipe = try ContentPipe.of(
                    head, method: method, separatesParts: settings.values.separatesParts,
                    limits: settings.values.contentLimits)
            } catch {
                throw .content(error)
            }
            if pipe?.hasParts ?? false { headOfParts = head }
        }
        isDecoded = if case .other = incoming { true } else { false }
        if let download { try download.open(for: response, expecting: expectedLength(of: response)) }
    }

    /// Bytes of content; negative: not known.
    private func expectedLength(of response: URLResponse) -> Int64 {
        let changesLength = pipe?.changesLength ?? (isDecoded && Self.hasCoding(response))
        return changesLength ? -1 : response.expectedContentLength
    }

    private static func hasCoding(_ response: URLResponse) -> Bool {
        (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") != nil
    }

    /// Makes the content of `response`, of which nothing was read, go to a file.
    mutating func becomeDownload(of response: URLResponse) throws(LoadFailure) {
        let target = DownloadTarget()
        try target.open(for: response, expecting: expectedLength(of: response))
        download = target
    }

    mutating func receive(_ data: Data) {
        if let pipe {
            hasPending = true
            return pipe.receive(data)
        }
        if waiting == nil { waiting = data } else { waiting?.append(data) }
    }

    mutating func receiveEnd() {
        hasPending = true
        pipe?.receiveEnd()
    }

    mutating func next() throws(LoadFailure) -> Piece {
        guard let pipe else {
            if let data = waiting.take() { return try piece(data) }
            guard hasPending else { return .nothing }
            return .end
        }
        switch try pipe.next() {
        case .data(let data): return try piece(data)
        case .part(let fields): return .part(head(ofPart: fields))
        case .needMoreData:
            hasPending = false
            return .nothing
        case .end: return .end
        }
    }

    private func piece(_ data: Data) throws(LoadFailure) -> Piece {
        guard let download else { return .data(data) }
        try download.write(data)
        return .written(data, total: download.length, expected: download.expectedLength)
    }

    /// The head of a part: the fields of the whole response, with the part's fields in place of those that
    /// describe content.
    private func head(ofPart fields: HeaderFields) -> ResponseHead {
        guard let whole = headOfParts else {
            preconditionFailure("bug in Rondo: a part without a multipart response")
        }
        var all = HeaderFields()
        for (name, value) in whole.fields
        where !name.lowercased().hasPrefix("content-") && !fields.contains(name) {
            all.append(name: name, value: value)
        }
        all.append(fields)
        return ResponseHead(
            version: whole.version, status: whole.status, reason: whole.reason, fields: all)
    }

    /// Discards bytes that were not read.
    mutating func discard() {
        pipe = nil
        headOfParts = nil
        waiting = nil
        hasPending = false
    }

    /// Discards bytes that were not read.
    ///
    /// - Returns: Their number, if they came without a pipe.
    mutating func discardUnread() -> Int {
        defer { discard() }
        return waiting?.count ?? 0
    }

    /// Discards bytes that were not read, and the file.
    mutating func discardAll() {
        discard()
        download?.discard()
    }

    /// The partial file of a download, if the rest can be requested later.
    ///
    /// - Parameters: See `DownloadTarget`.
    func takePartial(of request: LoadRequest, leftOrigin: Bool) -> PartialDownload? {
        isDecodedOrDivided ? nil : download?.takePartial(of: request, leftOrigin: leftOrigin)
    }

    /// Whether the body differs from the content, because it is decoded or has parts.
    var isDecodedOrDivided: Bool { pipe != nil }
    var hasParts: Bool { headOfParts != nil }

    /// Whether bytes, or the end, have not been read yet. A pipe that has said that it needs more bytes has
    /// none.
    var hasUnread: Bool { hasPending || waiting != nil }

    /// The codings of the content, in the order in which they were applied.
    var codings: [ContentCoding] { pipe?.codings ?? [] }

    /// Decodes only that many codings, the ones applied last. Call it before any bytes have come.
    func undoCodings(_ count: Int) throws(LoadFailure) {
        do throws(ContentDecodingError) {
            try pipe?.undo(count)
        } catch {
            throw .content(error)
        }
    }
}
