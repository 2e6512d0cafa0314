// Writes requests as bytes. Everything is checked before the first byte is written, so that a rejected
// request leaves the output unchanged. The check looks for bytes that could make a server read another
// request than was intended.

/// Checks and writes requests.
enum HTTP1Writer {
    // MARK: Heads

    /// Throws if the head must not be sent.
    static func check(_ head: RequestHead, _ body: RequestBodyFraming) throws(HTTP1Error) {
        if !Grammar.isToken(head.method) { throw .local(.invalidMethod(head.method)) }
        if !Grammar.isTarget(head.target) {
            throw .local(.invalidTarget(head.target))
        }
        if !head.fields.isChecked { try check(head.fields) }
        switch head.fields.count(of: "Host") {
        case 0: throw .local(.missingHost)
        case 1: break
        default: throw .local(.repeatedHost)
        }
        try checkFraming(head.fields, body)
    }

    /// Writes a head that has been checked. `Host` comes first (RFC 9110 §7.2), then the other fields in
    /// order, then the field for the body's framing, unless the caller's fields include it.
    static func write(_ head: RequestHead, _ body: RequestBodyFraming, into output: inout [UInt8]) {
        let size = head.method.utf8.count + head.target.utf8.count + head.fields.bytes.count
        output.reserveCapacity(output.count + size + 4 * head.fields.count + 64)
        output.append(text: head.method)
        output.append(Grammar.space)
        output.append(text: head.target)
        output.append(" HTTP/1.1\r\n")
        if head.fields.isSerialized, let first = head.fields.entries.first, head.fields.isNamed(first, "Host")
        {
            output.append(contentsOf: head.fields.bytes)
        } else {
            for entry in head.fields.entries where head.fields.isNamed(entry, "Host") {
                write(entry, of: head.fields, into: &output)
            }
            for entry in head.fields.entries where !head.fields.isNamed(entry, "Host") {
                write(entry, of: head.fields, into: &output)
            }
        }
        switch body {
        case .none: break
        case .length(let length):
            if head.fields.count(of: "Content-Length") == 0 {
                output.append("Content-Length: ")
                output.append(contentsOf: String(length).utf8)
                output.append("\r\n")
            }
        case .chunked:
            if head.fields.count(of: "Transfer-Encoding") == 0 {
                output.append("Transfer-Encoding: chunked\r\n")
            }
        }
        output.append("\r\n")
    }

    // MARK: Chunks

    /// Writes the line before a chunk of `count` bytes.
    static func writeChunkSize(_ count: Int, into output: inout [UInt8]) {
        output.append(contentsOf: String(count, radix: 16).utf8)
        output.append("\r\n")
    }

    static func writeLineEnd(into output: inout [UInt8]) { output.append("\r\n") }

    static func checkTrailers(_ trailers: HeaderFields) throws(HTTP1Error) {
        try check(trailers)
        for entry in trailers.entries {
            let forbidden: [StaticString] = ["Content-Length", "Transfer-Encoding", "Host", "Trailer"]
            if forbidden.contains(where: { trailers.isNamed(entry, $0) }) {
                throw .local(.forbiddenTrailer(trailers.name(entry)))
            }
        }
    }

    /// Writes the last chunk and the trailer section.
    static func writeLastChunk(_ trailers: HeaderFields, into output: inout [UInt8]) {
        output.append("0\r\n")
        for entry in trailers.entries { write(entry, of: trailers, into: &output) }
        output.append("\r\n")
    }

    // MARK: Fields

    /// Rejects CR, LF and NUL (RFC 9110 §5.5). Other control characters are the caller's own risk.
    static func check(_ fields: HeaderFields) throws(HTTP1Error) {
        try fields.bytes.withUnsafeBufferPointer { (bytes) throws(HTTP1Error) in
            for entry in fields.entries {
                var isName = entry.nameCount > 0
                for index in entry.name { isName = isName && Grammar.isToken(bytes[index]) }
                if !isName { throw .local(.invalidFieldName(fields.name(entry))) }
                let value = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[entry.value]))
                if Grammar.hasLineEnd(value) {
                    throw .local(.invalidFieldValue(name: fields.name(entry)))
                }
            }
        }
    }

    /// The caller's fields may include the framing fields, but must then agree with `body`.
    private static func checkFraming(
        _ fields: HeaderFields, _ body: RequestBodyFraming
    ) throws(HTTP1Error) {
        if case .length(let length) = body, length < 0 { throw .local(.invalidLength(length)) }
        if fields.count(of: "Content-Length") > 0 {
            let wanted =
                switch body {
                case .none: ["0"]
                case .length(let length): [String(length)]
                case .chunked: [String]()
                }
            if fields.values(for: "Content-Length") != wanted {
                throw .local(.framingMismatch(field: "Content-Length"))
            }
        }
        if fields.count(of: "Transfer-Encoding") > 0 {
            let codings = fields.values(for: "Transfer-Encoding").map { $0.lowercased() }
            if body != .chunked || codings != ["chunked"] {
                throw .local(.framingMismatch(field: "Transfer-Encoding"))
            }
        }
    }

    private static func write(
        _ entry: HeaderFields.Entry, of fields: HeaderFields, into output: inout [UInt8]
    ) {
        output.append(contentsOf: fields.bytes[entry.name])
        output.append(": ")
        output.append(contentsOf: fields.bytes[entry.value])
        output.append("\r\n")
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ text: StaticString) {
        append(contentsOf: text.utf8Bytes)
    }
}
