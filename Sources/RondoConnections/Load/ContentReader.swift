internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// Takes the bytes of a response as they are transferred, and gives its content piece by piece: decoded, divided into
/// parts, and written to the file of a download.
struct ContentReader {
    enum Piece {
        case nothing
        case data(Data)
        /// These bytes are in the file now: how many, and how many so far and in all.
        case written(Data, total: Int64, expected: Int64)
        /// The next part of a multipart begins, with this head (rule UC-22).
        case part(ResponseHead)
        case end
    }

    /// Where the content goes, if it is that of a download.
    private(set) var download: DownloadTarget?
    /// Nil where the body is the content.
    private var pipe: ContentPipe?
    /// The head of the whole, where the body has parts.
    private var headOfParts: ResponseHead?
    /// What came without a pipe, and was not asked for yet.
    private var waiting: Data?
    private var sawEnd = false

    /// - Parameter earlier: What an earlier download has left of this one.
    init(isDownload: Bool, continuing earlier: PartialDownload?) {
        download = isDownload ? DownloadTarget(earlier) : nil
    }

    /// Gets ready for the content of `incoming`, of which `response` was made. A part of a multipart is such a response, too.
    ///
    /// - Parameter limits: Of what is decoded; nil: the body is the content, whatever its head says.
    mutating func begin(
        _ incoming: IncomingResponse, _ response: URLResponse, method: String,
        limits: RondoHTTP.ContentLimits?
    ) throws(LoadFailure) {
        if case .http = incoming { discard() }
        if let limits, case .http(let head, _) = incoming {
            do throws(ContentDecodingError) {
                pipe = try ContentPipe.of(head, method: method, limits: limits)
            } catch {
                throw .content(error)
            }
            if pipe?.hasParts ?? false { headOfParts = head }
        }
        guard let download else { return }
        let changesLength = pipe?.changesLength ?? false
        try download.open(for: response, expecting: changesLength ? -1 : response.expectedContentLength)
    }

    /// The content of `response`, of which nothing was read, goes to a file.
    mutating func becomeDownload(of response: URLResponse) throws(LoadFailure) {
        let target = DownloadTarget()
        try target.open(
            for: response, expecting: pipe?.changesLength ?? false ? -1 : response.expectedContentLength)
        download = target
    }

    mutating func receive(_ data: Data) {
        if let pipe { return pipe.receive(data) }
        if waiting == nil { waiting = data } else { waiting?.append(data) }
    }

    mutating func receiveEnd() {
        sawEnd = true
        pipe?.receiveEnd()
    }

    mutating func next() throws(LoadFailure) -> Piece {
        guard let pipe else {
            if let data = waiting.take() { return try piece(data) }
            guard sawEnd else { return .nothing }
            return .end
        }
        switch try pipe.next() {
        case .data(let data): return try piece(data)
        case .part(let fields): return .part(head(ofPart: fields))
        case .needMoreData: return .nothing
        case .end: return .end
        }
    }

    private func piece(_ data: Data) throws(LoadFailure) -> Piece {
        guard let download else { return .data(data) }
        try download.write(data)
        return .written(data, total: download.length, expected: download.expectedLength)
    }

    /// The whole's fields, with those of the part in the place of what speaks of content.
    private func head(ofPart fields: HeaderFields) -> ResponseHead {
        guard let whole = headOfParts else { preconditionFailure("bug in Rondo: a part without a whole") }
        var all = HeaderFields()
        for (name, value) in whole.fields
        where !name.lowercased().hasPrefix("content-") && !fields.contains(name) {
            all.append(name: name, value: value)
        }
        all.append(fields)
        return ResponseHead(
            version: whole.version, status: whole.status, reason: whole.reason, fields: all)
    }

    /// What has come and was not read is of no interest.
    mutating func discard() {
        pipe = nil
        headOfParts = nil
        waiting = nil
        sawEnd = false
    }

    /// The same, and of the file that it has been written to.
    mutating func discardAll() {
        discard()
        download?.discard()
    }

    /// The part of a download that is there, if the rest can be asked for later.
    ///
    /// - Parameter request: The last one that was sent.
    func takePartial(of request: LoadRequest) -> PartialDownload? {
        isChanged ? nil : download?.takePartial(of: request)
    }

    /// The body is not the content: it is decoded, or has parts.
    var isChanged: Bool { pipe != nil }
    var hasParts: Bool { headOfParts != nil }

    /// Something has come that was not read.
    var hasUnread: Bool { pipe != nil || waiting != nil || sawEnd }

    /// The codings of the content, in the order in which they were applied.
    var codings: [ContentCoding] { pipe?.codings ?? [] }

    /// Undoes only so many of them, those that were applied last. Before anything has come.
    func undoCodings(_ count: Int) throws(LoadFailure) {
        do throws(ContentDecodingError) {
            try pipe?.undo(count)
        } catch {
            throw .content(error)
        }
    }
}
