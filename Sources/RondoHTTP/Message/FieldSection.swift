// A header or trailer section (RFC 9112 §5): finding its end while it arrives, and parsing it once it is
// complete.
//
// Two exceptions to strict parsing, both possible because a client is the last recipient: it passes nothing
// on, so no other recipient can read the same bytes differently.
//   - A line of a header may end in a bare LF, as RFC 9112 §2.2 allows. curl, Go and the browsers accept it,
//     and servers that print their own headers send it. In trailers it is an error, as everywhere in a
//     chunked body.
//   - A folded value is joined by one space for each fold, with the blanks around it, as §5.2 demands of user
//     agents.
// Control characters stay in a value, as RFC 9110 §5.5 permits a recipient that passes nothing on: a server
// that writes one into some field has still sent its page. The user of a value decides about them (a cookie
// is dropped). A bare CR, NUL, whitespace before the colon or before the first field is an error.

internal import Glibc

/// Finds the empty line that ends a section, in whatever pieces the section arrives.
struct FieldSectionScanner: Sendable {
    private enum Position: Sendable { case lineStart, carriageReturn, inLine }

    /// A section begins at the start of a line.
    private var position = Position.lineStart
    /// The number of line ends seen, including the empty line's.
    private(set) var lineCount = 0

    /// The index after the empty line; nil if the line is not in `input` from `start` on.
    mutating func end(in input: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index < input.count {
            if position == .inLine {
                guard let end = Self.lineFeed(in: input, from: index) else { return nil }
                index = end + 1
                lineCount += 1
                position = .lineStart
                continue
            }
            let byte = input[index]
            index += 1
            if byte == Grammar.lineFeed {
                lineCount += 1
                return index
            }
            let isFirst = position == .lineStart
            position = isFirst && byte == Grammar.carriageReturn ? .carriageReturn : .inLine
        }
        return nil
    }

    private static func lineFeed(in input: UnsafeRawBufferPointer, from start: Int) -> Int? {
        // The search stays inside `input`: it covers `start` up to the end.
        guard let base = input.baseAddress,
            let found = memchr(base + start, Int32(Grammar.lineFeed), input.count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}

/// Parses a complete section.
struct FieldSectionParser {
    private let section: UnsafeRawBufferPointer
    private let kind: HTTP1Error.FieldSection
    private let maximumCount: Int
    private var position = 0
    private var entries: [HeaderFields.Entry] = []
    private var marks: UInt64 = 0
    /// Fields whose values are folded: their index in `entries`, and the range from the colon to the line
    /// end.
    private var folded: [(entry: Int, value: Range<Int>)] = []

    /// - Parameters:
    ///   - section: All lines including the empty one at the end, as found by `FieldSectionScanner`.
    ///   - lineCount: An upper bound of the number of fields.
    init(
        _ section: UnsafeRawBufferPointer, _ kind: HTTP1Error.FieldSection, lineCount: Int, maximumCount: Int
    ) {
        self.section = section
        self.kind = kind
        self.maximumCount = maximumCount
        entries.reserveCapacity(min(lineCount, maximumCount))
    }

    mutating func parse() throws(HTTP1Error) -> HeaderFields {
        while !(try isAtEmptyLine()) {
            if entries.count == maximumCount { throw .peer(.exceeded(.fieldCount(maximumCount))) }
            let name = try takeName()
            let value = try takeValue(of: name)
            marks |= HeaderFields.mark(name.count, section[name.lowerBound])
            entries.append(
                HeaderFields.Entry(
                    nameStart: UInt32(name.lowerBound), nameCount: UInt32(name.count),
                    valueStart: UInt32(value.lowerBound), valueCount: UInt32(value.count)))
        }
        if entries.isEmpty { return HeaderFields() }
        var bytes = [UInt8](section)
        if !folded.isEmpty { unfold(&bytes) }
        return HeaderFields(bytes: bytes, entries: entries, marks: marks)
    }

    /// Replaces each fold by one space. The bytes that this frees at the end of a value become spaces, so
    /// that a later head with exactly these bytes has the same fields (`RecentResponseHead`).
    private mutating func unfold(_ bytes: inout [UInt8]) {
        for (entry, raw) in folded {
            var end = raw.lowerBound
            var startOfBlanks = end
            var hasLineEnd = false
            for byte in section[raw] {
                if isBlank(byte) {
                    hasLineEnd = hasLineEnd || byte == Grammar.lineFeed
                } else {
                    if hasLineEnd {
                        bytes[startOfBlanks] = Grammar.space
                        end = startOfBlanks + 1
                        hasLineEnd = false
                    }
                    startOfBlanks = end + 1
                }
                bytes[end] = byte
                end += 1
            }
            for index in startOfBlanks..<raw.upperBound { bytes[index] = Grammar.space }
            var start = raw.lowerBound
            while start < startOfBlanks, isBlank(bytes[start]) { start += 1 }
            entries[entry].valueStart = UInt32(start)
            entries[entry].valueCount = UInt32(startOfBlanks - start)
        }
    }

    private func isAtEmptyLine() throws(HTTP1Error) -> Bool {
        switch section[position] {
        case Grammar.lineFeed where kind == .header: return true
        case Grammar.lineFeed: throw .peer(.invalidLineEnd(kind))
        case Grammar.carriageReturn:
            // The scanner ends a section only at LF or CR LF, so there is a next byte.
            if section[position + 1] != Grammar.lineFeed { throw .peer(.invalidLineEnd(kind)) }
            return true
        default: return false
        }
    }

    /// Reads a name and its colon.
    private mutating func takeName() throws(HTTP1Error) -> Range<Int> {
        let start = position
        var end = start
        while Grammar.isToken(section[end]) { end += 1 }
        position = end
        guard section[position] == Grammar.colon, position > start else {
            let line = section[start...].prefix { $0 != Grammar.carriageReturn && $0 != Grammar.lineFeed }
            throw .peer(.invalidFieldLine(excerpt: Grammar.excerpt(line)))
        }
        defer { position += 1 }
        return start..<position
    }

    /// Reads a value with its line end, including the lines over which it is folded.
    private mutating func takeValue(of name: Range<Int>) throws(HTTP1Error) -> Range<Int> {
        let start = position
        var end: Int
        var isFolded = false
        repeat {
            skipFieldValue()
            end = position
            try takeLineEnd(of: name)
            isFolded = isFolded || Grammar.isWhitespace(section[position])
        } while Grammar.isWhitespace(section[position])
        if isFolded { folded.append((entries.count, start..<end)) }
        return trimmed(start..<end)
    }

    /// Advances to the first CR, LF or NUL. There is always one: the line's end.
    private mutating func skipFieldValue() {
        // Eight bytes at a time, as a number in which each byte is tested separately (Hacker's Delight, 6-1):
        // the high bit of a byte is set if the byte is below SP. Only the lowest set bit is reliable. The
        // loop also stops at HTAB and control characters, which a value may contain.
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        var index = position
        while index + 8 <= section.count {
            let bytes = UInt64(littleEndian: section.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let stops = (bytes &- ones &* 0x20) & ~bytes & highs
            if stops == 0 {
                index += 8
                continue
            }
            index += stops.trailingZeroBitCount / 8
            if Grammar.endsLine(section[index]) { break }
            index += 1
        }
        while !Grammar.endsLine(section[index]) { index += 1 }
        position = index
    }

    private mutating func takeLineEnd(of name: Range<Int>) throws(HTTP1Error) {
        let byte = section[position]
        if byte == Grammar.lineFeed, kind == .header {
            position += 1
        } else if byte == Grammar.carriageReturn, section[position + 1] == Grammar.lineFeed {
            position += 2
        } else if byte == Grammar.carriageReturn || byte == Grammar.lineFeed {
            throw .peer(.invalidLineEnd(kind))
        } else {
            throw .peer(.invalidFieldValue(name: Grammar.excerpt(section[name]), byte: byte))
        }
    }

    /// The range without whitespace at either end; the line ends of a fold count as whitespace.
    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(section[start]) { start += 1 }
        while end > start, isBlank(section[end - 1]) { end -= 1 }
        return start..<end
    }

    private func isBlank(_ byte: UInt8) -> Bool {
        byte == Grammar.space || byte == Grammar.tab || byte == Grammar.carriageReturn
            || byte == Grammar.lineFeed
    }
}
