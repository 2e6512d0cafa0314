// Turns the bytes of responses into heads, ranges of body bytes and ends. The reader knows the grammar and
// its position, but not the request: after each head its owner passes the framing of the body.
//
// Bytes are read in place. Only an unfinished status line or field section is stored between calls, together
// with the position up to which it has been searched, so that a head that arrives byte by byte is not
// searched again for each byte. Body bytes are never stored.

/// Parses the bytes of responses into events.
struct HTTP1Reader: Sendable {
    enum Output {
        case needMoreData
        case head(ResponseHead)
        /// The bytes in this range of the input belong to the body; never empty.
        case body(Range<Int>)
        case trailers(HeaderFields)
        case end
    }

    private enum Phase: Sendable {
        case statusLine(emptyLines: Int)
        case fields(StatusLine, lineSize: Int, FieldSectionScanner)
        /// A head was returned, and the framing of its body has not been passed yet.
        case decision
        case fixed(length: Int64, remaining: Int64)
        case chunked(ChunkedBody)
        case trailers(FieldSectionScanner, received: Int64)
        case untilClose
        case complete
    }

    private var phase = Phase.complete
    private var unfinished: [UInt8] = []
    private let bounds: Bounds
    var recentHead = RecentResponseHead()

    init(limits: HTTP1Limits) { bounds = limits == HTTP1Limits() ? .usual : .own(limits) }

    private enum Bounds: Sendable {
        case usual
        /// With limits of its own the connection does not reuse the last head, which might exceed them.
        indirect case own(HTTP1Limits)
    }

    var limits: HTTP1Limits {
        switch bounds {
        case .usual: HTTP1Limits()
        case .own(let limits): limits
        }
    }

    private var hasUsualLimits: Bool { if case .usual = bounds { true } else { false } }

    // MARK: The next phase

    /// Expects a response: the first of a cycle, or the one after an interim response.
    mutating func expectHead() { phase = .statusLine(emptyLines: 0) }

    /// Expects the body of the head that was returned, in this framing.
    mutating func expectBody(_ framing: ResponseFraming) {
        switch framing {
        case .none: phase = .fixed(length: 0, remaining: 0)
        case .length(let length): phase = .fixed(length: length, remaining: length)
        case .chunked: phase = .chunked(ChunkedBody(maximumLineLength: limits.maximumChunkLineLength))
        case .untilClose: phase = .untilClose
        case .switched: phase = .complete
        }
    }

    // MARK: Inputs

    /// Reads from `input` starting at `consumed`, and advances `consumed`. `.needMoreData` means that all of
    /// `input` was read.
    mutating func next(
        in input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(HTTP1Error) -> Output {
        /// The start of a head that began in `input` and may be remembered.
        var headStart: Int?
        while true {
            switch phase {
            case .statusLine(let emptyLines):
                if hasUsualLimits, unfinished.isEmpty {
                    headStart = consumed
                    let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
                    if let (head, size) = recentHead.find(in: rest) {
                        consumed += size
                        phase = .decision
                        return .head(head)
                    }
                }
                guard try takeStatusLine(in: input, &consumed, emptyLines) else { return .needMoreData }
            case .fields(let line, let lineSize, let scanner):
                let output = try takeFields(in: input, &consumed, line, lineSize, scanner)
                if let headStart, case .head(let head) = output {
                    let bytes = UnsafeRawBufferPointer(rebasing: input[headStart..<consumed])
                    recentHead.note(head, of: bytes, lineSize: lineSize)
                }
                return output
            case .fixed(_, remaining: 0):
                phase = .complete
                return .end
            case .fixed(let length, let remaining):
                let count = min(remaining, Int64(input.count - consumed))
                phase = .fixed(length: length, remaining: remaining - count)
                return takeBody(Int(count), &consumed)
            case .untilClose:
                return takeBody(input.count - consumed, &consumed)
            case .chunked(var body):
                let step = try body.next(in: input, consumed: &consumed)
                phase = .chunked(body)
                switch step {
                case .data(let range): return .body(range)
                case .needMoreData: return .needMoreData
                case .trailers: phase = .trailers(FieldSectionScanner(), received: body.received)
                }
            case .trailers(let scanner, let received):
                return try takeTrailers(in: input, &consumed, scanner, received)
            case .decision, .complete:
                preconditionFailure("bug in Rondo: nothing is to be read now")
            }
        }
    }

    /// Ends the input: the server will send nothing more, and everything before has been read.
    mutating func end(hadInformational: Bool) throws(HTTP1Error) -> Output {
        switch phase {
        case .untilClose:
            phase = .complete
            return .end
        case .statusLine:
            let begun = unfinished.last == Grammar.carriageReturn ? unfinished.dropLast() : unfinished[...]
            if begun.isEmpty {
                throw .peer(hadInformational ? .closedBeforeFinalResponse : .closedBeforeResponse)
            }
            if !StatusLine.canBegin(with: begun) {
                throw .peer(.invalidStatusLine(excerpt: Grammar.excerpt(begun)))
            }
            throw .peer(.truncatedHead(received: unfinished.count))
        case .fields(_, let lineSize, _):
            throw .peer(.truncatedHead(received: lineSize + unfinished.count))
        case .fixed(let length, let remaining):
            throw .peer(.truncatedBody(expected: length, received: length - remaining))
        case .chunked(let body):
            throw .peer(.truncatedBody(expected: nil, received: body.received))
        case .trailers(_, let received):
            throw .peer(.truncatedBody(expected: nil, received: received))
        case .decision, .complete:
            preconditionFailure("bug in Rondo: nothing is to be read now")
        }
    }

    // MARK: Bodies

    private func takeBody(_ count: Int, _ consumed: inout Int) -> Output {
        if count == 0 { return .needMoreData }
        defer { consumed += count }
        return .body(consumed..<consumed + count)
    }

    // MARK: Heads

    /// - Returns: Whether a whole line was read. An empty line counts; another line is then expected.
    private mutating func takeStatusLine(
        in input: UnsafeRawBufferPointer, _ consumed: inout Int, _ emptyLines: Int
    ) throws(HTTP1Error) -> Bool {
        let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
        guard let lineFeed = rest.firstIndex(of: Grammar.lineFeed) else {
            consumed += rest.count
            unfinished.append(contentsOf: rest)
            try checkUnfinishedStatusLine()
            return false
        }
        consumed += lineFeed + 1
        let lineSize = unfinished.count + lineFeed + 1
        let end = UnsafeRawBufferPointer(rebasing: rest[..<lineFeed])
        let line = try withWhole(end) { [limits] (line) throws(HTTP1Error) -> StatusLine? in
            let hasReturn = line.last == Grammar.carriageReturn
            let content = UnsafeRawBufferPointer(rebasing: line.dropLast(hasReturn ? 1 : 0))
            if content.count > limits.maximumStatusLineLength, StatusLine.canBegin(with: content) {
                throw limits.statusLineExceeded
            }
            return content.isEmpty ? nil : try StatusLine(content)
        }
        if let line {
            phase = .fields(line, lineSize: lineSize, FieldSectionScanner())
        } else if emptyLines == limits.maximumEmptyLines {
            throw .peer(.exceeded(.emptyLines(emptyLines)))
        } else {
            phase = .statusLine(emptyLines: emptyLines + 1)
        }
        return true
    }

    /// Rejects garbage before its line ends, since it may never end; but only once enough bytes are there for
    /// the error to quote the same ones, however they arrived.
    private func checkUnfinishedStatusLine() throws(HTTP1Error) {
        if StatusLine.canBegin(with: unfinished) {
            // The last byte may be the CR of the line end, which is not counted.
            if unfinished.count > limits.maximumStatusLineLength + 1 { throw limits.statusLineExceeded }
        } else if unfinished.count > Grammar.excerptLength + 1 {
            throw .peer(.invalidStatusLine(excerpt: Grammar.excerpt(unfinished)))
        }
    }

    private mutating func takeFields(
        in input: UnsafeRawBufferPointer, _ consumed: inout Int,
        _ line: StatusLine, _ lineSize: Int, _ scanner: FieldSectionScanner
    ) throws(HTTP1Error) -> Output {
        var scanner = scanner
        let size = limits.maximumHeadSize - lineSize
        let exceeded = HTTP1Error.Limit.headSize(limits.maximumHeadSize)
        let fields = try takeSection(.header, in: input, &consumed, &scanner, maximumSize: size, exceeded)
        guard let fields else {
            phase = .fields(line, lineSize: lineSize, scanner)
            return .needMoreData
        }
        phase = .decision
        return .head(
            ResponseHead(version: line.version, status: line.status, reason: line.reason, fields: fields))
    }

    private mutating func takeTrailers(
        in input: UnsafeRawBufferPointer, _ consumed: inout Int,
        _ scanner: FieldSectionScanner, _ received: Int64
    ) throws(HTTP1Error) -> Output {
        var scanner = scanner
        let size = limits.maximumTrailerSize
        let fields = try takeSection(
            .trailer, in: input, &consumed, &scanner, maximumSize: size, .trailerSize(size))
        guard let fields else {
            phase = .trailers(scanner, received: received)
            return .needMoreData
        }
        phase = .fixed(length: 0, remaining: 0)
        return fields.isEmpty ? try next(in: input, consumed: &consumed) : .trailers(fields)
    }

    private mutating func takeSection(
        _ kind: HTTP1Error.FieldSection, in input: UnsafeRawBufferPointer, _ consumed: inout Int,
        _ scanner: inout FieldSectionScanner, maximumSize: Int, _ exceeded: HTTP1Error.Limit
    ) throws(HTTP1Error) -> HeaderFields? {
        let start = consumed
        let end = scanner.end(in: input, from: start)
        consumed = end ?? input.count
        if unfinished.count + consumed - start > maximumSize { throw .peer(.exceeded(exceeded)) }
        let piece = UnsafeRawBufferPointer(rebasing: input[start..<consumed])
        guard end != nil else {
            unfinished.append(contentsOf: piece)
            return nil
        }
        let (lineCount, maximumCount) = (scanner.lineCount, limits.maximumFieldCount)
        return try withWhole(piece) { (section) throws(HTTP1Error) in
            var parser = FieldSectionParser(section, kind, lineCount: lineCount, maximumCount: maximumCount)
            return try parser.parse()
        }
    }

    /// Calls `body` with the stored bytes followed by `end`; in place if no bytes were stored. Afterwards
    /// none are stored.
    private mutating func withWhole<Result>(
        _ end: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(HTTP1Error) -> Result
    ) throws(HTTP1Error) -> Result {
        if unfinished.isEmpty { return try body(end) }
        unfinished.append(contentsOf: end)
        defer { unfinished = [] }
        return try unfinished.withUnsafeBufferPointer { (whole) throws(HTTP1Error) in
            try body(UnsafeRawBufferPointer(whole))
        }
    }
}

extension HTTP1Limits {
    fileprivate var statusLineExceeded: HTTP1Error {
        .peer(.exceeded(.statusLineLength(maximumStatusLineLength)))
    }
}
