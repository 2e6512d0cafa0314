// The chunked coding (RFC 9112 §7.1), read strictly: differences between a lenient and a strict reader are
// what request and response smuggling mostly uses. There are two exceptions. Extensions are skipped without
// being read, as the RFC requires of recipients that know none. Spaces and tabs between a size and what
// follows are accepted as padding: before an extension they are BWS; before the line end old servers put
// them, and Go and Chromium accept them for that reason. A bare LF, a bare CR, a sign, `0x` or a size of more
// than 63 bits is an error.
//
// The line before a chunk is read byte by byte by a small state machine and never stored, so a line that
// arrives in pieces costs nothing, and of an endless line only the bytes are counted.

/// A reader of a chunked body, and its position in the body.
struct ChunkedBody: Sendable {
    enum Step: Equatable {
        /// The bytes in this range of the input belong to the body.
        case data(Range<Int>)
        case needMoreData
        /// The last chunk has been seen; the trailer section begins.
        case trailers
    }

    private enum Position: Sendable {
        /// In the digits of a size; `digits` is false before the first one.
        case size(Int64, digits: Bool)
        case padding(Int64)
        case `extension`(Int64)
        /// After the CR of the line that holds the size.
        case sizeLineFeed(Int64)
        case data(remaining: Int64)
        case dataCarriageReturn
        case dataLineFeed
        case trailers
    }

    private var position = Position.size(0, digits: false)
    private var lineLength = 0
    private let maximumLineLength: Int
    /// The number of body bytes so far, without framing.
    private(set) var received: Int64 = 0

    init(maximumLineLength: Int) {
        self.maximumLineLength = maximumLineLength
    }

    /// Reads from `input` starting at `consumed`, and advances `consumed`.
    mutating func next(
        in input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(HTTP1Error) -> Step {
        while consumed < input.count {
            if case .data(let remaining) = position {
                let count = Int(min(remaining, Int64(input.count - consumed)))
                let range = consumed..<consumed + count
                consumed += count
                received += Int64(count)
                let isWhole = Int64(count) == remaining
                position = isWhole ? .dataCarriageReturn : .data(remaining: remaining - Int64(count))
                return .data(range)
            }
            if case .trailers = position { return .trailers }
            try take(input[consumed])
            consumed += 1
        }
        if case .trailers = position { return .trailers }
        return .needMoreData
    }

    /// Reads one byte of framing.
    private mutating func take(_ byte: UInt8) throws(HTTP1Error) {
        switch position {
        case .size(let size, let hasDigits):
            try countLineByte(byte)
            if let digit = Grammar.hexadecimalValue(byte) {
                if size > Int64.max >> 4 { throw flaw(.sizeTooLarge) }
                position = .size(size << 4 | Int64(digit), digits: true)
            } else if !hasDigits {
                throw flaw(.missingSize(byte: byte))
            } else {
                try endOfSize(size, byte)
            }
        case .padding(let size):
            try countLineByte(byte)
            try endOfSize(size, byte)
        case .extension(let size):
            try countLineByte(byte)
            if byte == Grammar.carriageReturn {
                position = .sizeLineFeed(size)
            } else if byte == Grammar.lineFeed {
                throw flaw(.invalidLineEnd)
            } else if !Grammar.isFieldValue(byte) {
                throw flaw(.invalidExtension(byte: byte))
            }
        case .sizeLineFeed(let size):
            if byte != Grammar.lineFeed { throw flaw(.invalidLineEnd) }
            lineLength = 0
            position = size == 0 ? .trailers : .data(remaining: size)
        case .dataCarriageReturn:
            if byte != Grammar.carriageReturn { throw flaw(.missingLineEndAfterData(byte: byte)) }
            position = .dataLineFeed
        case .dataLineFeed:
            if byte != Grammar.lineFeed { throw flaw(.missingLineEndAfterData(byte: byte)) }
            position = .size(0, digits: false)
        case .data, .trailers:
            preconditionFailure("bug in Rondo: no framing here")
        }
    }

    private mutating func endOfSize(_ size: Int64, _ byte: UInt8) throws(HTTP1Error) {
        switch byte {
        case Grammar.carriageReturn: position = .sizeLineFeed(size)
        case Grammar.lineFeed: throw flaw(.invalidLineEnd)
        case Grammar.semicolon: position = .extension(size)
        case Grammar.space, Grammar.tab: position = .padding(size)
        default: throw flaw(.invalidSize(byte: byte))
        }
    }

    private mutating func countLineByte(_ byte: UInt8) throws(HTTP1Error) {
        if byte == Grammar.carriageReturn { return }
        lineLength += 1
        if lineLength > maximumLineLength { throw .peer(.exceeded(.chunkLineLength(maximumLineLength))) }
    }

    private func flaw(_ flaw: HTTP1Error.ChunkFlaw) -> HTTP1Error { .peer(.invalidChunk(flaw)) }
}
