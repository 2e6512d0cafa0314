package import Foundation

// RFC 2046 §5.1: parts between lines that begin with "--" and the boundary; text before the first and after
// the last line is ignored. Cameras and pages that push updates (multipart/x-mixed-replace) write this format
// loosely, so it is read the way browsers read it:
//
//   - lines end in CR LF or in LF alone;
//   - the boundary in Content-Type may have the two hyphens already, or only there;
//   - a part ends only at its delimiter: Content-Length in a part is ignored;
//   - the connection may end without the closing delimiter.

/// Parses a multipart body while it arrives.
///
/// `receive` only stores bytes, and `next` returns one event. All bytes of a part are returned at once,
/// except those that may still become the next delimiter. An error is a state that is never left.
package struct MultipartReader: Sendable {
    package enum Event: Sendable, Equatable {
        /// A part begins.
        case part(HeaderFields)
        /// Bytes of the part, never empty.
        case data(Data)
        /// The part is complete.
        case partEnd
        case needMoreData
        /// The body is complete.
        case end
    }

    package struct Limits: Sendable, Equatable {
        /// Bytes of a part's header. A quarter of the limit for a response's (`HTTP1Limits.maximumHeadSize`):
        /// cameras send two fields.
        package var maximumHeadSize = 64 * 1024
        package var maximumFieldCount = 100
        /// Blanks between a delimiter and its line end (RFC 2046 §5.1.1, `transport-padding`). A line with
        /// more is not a delimiter.
        package var maximumPadding = 256

        package init() {}
    }

    package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
        case headTooLarge(Int)
        case invalidHead(HTTP1Error)

        package var description: String {
            switch self {
            case .headTooLarge(let limit): "A part's header is longer than \(limit) bytes."
            case .invalidHead(let error): "A part's header cannot be read: \(error)"
            }
        }
    }

    private enum State: Sendable {
        /// Before the first delimiter.
        case preamble
        case head(FieldSectionScanner, scanned: Int)
        case body
        /// After the last delimiter.
        case epilogue
        case failed(Failure)
    }

    /// The longest accepted boundary. RFC 2046 §5.1.1 allows 70 characters; some programs write longer ones.
    package static let maximumBoundaryLength = 256

    private let limits: Limits
    /// "--" and the boundary.
    private let delimiter: [UInt8]
    /// The boundary alone, if it begins with "--" itself.
    private let bareDelimiter: [UInt8]?
    private var state = State.preamble
    private var buffer: [UInt8] = []
    private var position = 0
    /// Whether the unread bytes begin at the start of a line.
    private var isAtLineStart = true
    private var sawEnd = false

    /// - Parameter boundary: The boundary as named by Content-Type.
    package init(boundary: String, limits: Limits = Limits()) {
        delimiter = Array("--\(boundary)".utf8)
        bareDelimiter = boundary.hasPrefix("--") ? Array(boundary.utf8) : nil
        self.limits = limits
    }

    /// The boundary of a `multipart/x-mixed-replace`; nil for every other type, and if there is no valid
    /// boundary.
    package static func boundary(ofMixedReplace contentType: String) -> String? {
        guard let type = MediaTypeField(contentType), type.essence == "multipart/x-mixed-replace" else {
            return nil
        }
        let boundary = type.parameters["boundary"] ?? ""
        return 1...maximumBoundaryLength ~= boundary.utf8.count ? boundary : nil
    }

    // MARK: Input

    package mutating func receive(_ bytes: some Sequence<UInt8>) {
        if case .epilogue = state { return }
        // Bytes that were read are dropped before more are stored.
        buffer.removeSubrange(..<position)
        position = 0
        buffer.append(contentsOf: bytes)
    }

    /// Ends the input: no more bytes will be received.
    package mutating func receiveEnd() { sawEnd = true }

    // MARK: Output

    package mutating func next() throws(Failure) -> Event {
        while true {
            switch state {
            case .failed(let failure):
                throw failure
            case .epilogue:
                buffer = []
                position = 0
                return .end
            case .preamble:
                switch search() {
                case .found(_, let after, let isLast): take(to: after, isLast: isLast)
                case .content(let end):
                    skip(to: end)
                    return waiting
                }
            case .head(var scanner, let scanned):
                guard let fields = try head(&scanner, scanned) else {
                    state = .head(scanner, scanned: buffer.count - position)
                    return waiting
                }
                state = .body
                isAtLineStart = true
                return .part(fields)
            case .body:
                let start = position
                switch search() {
                case .found(let end, let after, let isLast):
                    if end > start {
                        // The next call finds the same delimiter, with nothing before it.
                        skip(to: end)
                        return .data(Data(buffer[start..<end]))
                    }
                    take(to: after, isLast: isLast)
                    return .partEnd
                case .content(let end):
                    skip(to: end)
                    if end > start { return .data(Data(buffer[start..<end])) }
                    guard sawEnd else { return .needMoreData }
                    state = .epilogue
                    return .partEnd
                }
            }
        }
    }

    private mutating func skip(to end: Int) {
        if end > position { isAtLineStart = buffer[end - 1] == Grammar.lineFeed }
        position = end
    }

    private mutating func take(to end: Int, isLast: Bool) {
        position = end
        isAtLineStart = true
        state = isLast ? .epilogue : .head(FieldSectionScanner(), scanned: 0)
    }

    private var waiting: Event { sawEnd ? .end : .needMoreData }

    // MARK: Heads

    private mutating func head(_ scanner: inout FieldSectionScanner, _ scanned: Int) throws(Failure)
        -> HeaderFields?
    {
        let (start, limits) = (position, limits)
        let result = buffer.withUnsafeBytes { bytes in
            Result { () throws(Failure) -> (HeaderFields, Int)? in
                let input = UnsafeRawBufferPointer(rebasing: bytes[start...])
                let end = scanner.end(in: input, from: scanned)
                guard (end ?? input.count) <= limits.maximumHeadSize else {
                    throw .headTooLarge(limits.maximumHeadSize)
                }
                guard let end else { return nil }
                let section = UnsafeRawBufferPointer(rebasing: input[..<end])
                var parser = FieldSectionParser(
                    section, .header, lineCount: scanner.lineCount, maximumCount: limits.maximumFieldCount)
                do throws(HTTP1Error) {
                    return (try parser.parse(), start + end)
                } catch {
                    throw .invalidHead(error)
                }
            }
        }
        switch result {
        case .success(let parsed?):
            position = parsed.1
            return parsed.0
        case .success(nil):
            return nil
        case .failure(let failure):
            state = .failed(failure)
            throw failure
        }
    }

    // MARK: Delimiters

    private enum Search {
        /// Content up to `end`, then a delimiter; `after` is the index after the delimiter.
        case found(end: Int, after: Int, isLast: Bool)
        /// Content up to `end`. The bytes after it, if there are any, may become a delimiter.
        case content(end: Int)
    }

    /// Searches for a delimiter, line by line.
    private func search() -> Search {
        var lineStart = position
        var isLineStart = isAtLineStart
        while true {
            if isLineStart {
                // The line end before a delimiter belongs to the delimiter (RFC 2046 §5.1.1).
                let end = endOfContent(before: lineStart)
                switch delimiterLine(at: lineStart) {
                case .whole(let after, let isLast): return .found(end: end, after: after, isLast: isLast)
                case .tooShort where !sawEnd: return .content(end: end)
                case .tooShort, .other: break
                }
            }
            guard let lineFeed = buffer[lineStart...].firstIndex(of: Grammar.lineFeed) else {
                // A CR at the end may be the first byte of a line end.
                let mayBeLineEnd =
                    buffer.count > position && buffer[buffer.count - 1] == Grammar.carriageReturn && !sawEnd
                return .content(end: buffer.count - (mayBeLineEnd ? 1 : 0))
            }
            lineStart = lineFeed + 1
            isLineStart = true
        }
    }

    /// The end of the content if a delimiter begins at `lineStart`: before the line end, as far as that is
    /// unread.
    private func endOfContent(before lineStart: Int) -> Int {
        var end = lineStart
        if end > position, buffer[end - 1] == Grammar.lineFeed { end -= 1 }
        if end > position, end < lineStart, buffer[end - 1] == Grammar.carriageReturn { end -= 1 }
        return end
    }

    private enum Line {
        case whole(after: Int, isLast: Bool)
        /// The line may become a delimiter.
        case tooShort
        case other
    }

    private func delimiterLine(at start: Int) -> Line {
        let line = delimiterLine(delimiter, at: start)
        guard case .other = line, let bareDelimiter else { return line }
        return delimiterLine(bareDelimiter, at: start)
    }

    private func delimiterLine(_ delimiter: [UInt8], at start: Int) -> Line {
        let available = buffer.count - start
        guard buffer[start...].starts(with: delimiter.prefix(available)) else { return .other }
        guard available > delimiter.count else {
            // At the end of the body the last delimiter may lack its hyphens and its line end.
            return sawEnd && available == delimiter.count
                ? .whole(after: buffer.count, isLast: true) : .tooShort
        }
        var index = start + delimiter.count
        if buffer[index] == Self.hyphen {
            guard index + 1 < buffer.count else { return .tooShort }
            // The bytes after it belong to the epilogue.
            return buffer[index + 1] == Self.hyphen ? .whole(after: index + 2, isLast: true) : .other
        }
        let padding = index
        while index < buffer.count, Grammar.isWhitespace(buffer[index]) { index += 1 }
        if index - padding > limits.maximumPadding { return .other }
        if index < buffer.count, buffer[index] == Grammar.carriageReturn { index += 1 }
        guard index < buffer.count else {
            return sawEnd ? .whole(after: buffer.count, isLast: true) : .tooShort
        }
        return buffer[index] == Grammar.lineFeed ? .whole(after: index + 1, isLast: false) : .other
    }

    private static let hyphen = UInt8(ascii: "-")
}
