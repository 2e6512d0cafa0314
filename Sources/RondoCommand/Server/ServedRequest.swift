import Rondo
import RondoHTTP

/// The head of a request, as far as a file server needs it.
struct ServedRequest {
    enum Method: Equatable {
        case get, head
    }

    /// The reason why a request is refused; the raw value is the status.
    enum Refusal: Int, Error, Equatable {
        case badRequest = 400
        case methodNotAllowed = 405
        case requestTimeout = 408
        case contentTooLarge = 413
        case headTooLarge = 431
        case serviceUnavailable = 503
        case versionNotSupported = 505
    }

    let method: Method
    let target: String
    let fields: HeaderFields
    let keepsConnection: Bool

    /// - Parameter head: The bytes before the empty line. Lines end with CR LF, or LF alone (RFC 9112,
    ///   section 2.2).
    init(head: ArraySlice<UInt8>) throws(Refusal) {
        var lines = head.split(separator: Grammar.lineFeed, omittingEmptySubsequences: false).map { line in
            line.last == Grammar.carriageReturn ? line.dropLast() : line
        }
        let words = lines.removeFirst().split(separator: Grammar.space, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 3, Grammar.isToken(words[0]), Grammar.isTarget(words[1]) else {
            throw .badRequest
        }
        let isVersion1 = words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0"
        guard isVersion1 else {
            throw words[2].hasPrefix("HTTP/") ? .versionNotSupported : .badRequest
        }
        fields = try Self.fields(lines)
        switch words[0] {
        case "GET": method = .get
        case "HEAD": method = .head
        default: throw .methodNotAllowed
        }
        target = words[1]
        // A Host field is required from HTTP/1.1 on (RFC 9112, section 3.2).
        guard fields.values(for: "Host").count == 1 || words[2] == "HTTP/1.0" else { throw .badRequest }
        // The server reads no bodies: it refuses a request with a body and closes the connection.
        let length = fields["Content-Length"] ?? "0"
        guard length == "0", fields["Transfer-Encoding"] == nil else { throw .contentTooLarge }
        if words[2] == "HTTP/1.0" {
            keepsConnection = fields.contains("Connection", token: "keep-alive")
        } else {
            keepsConnection = !fields.contains("Connection", token: "close")
        }
    }

    private static func fields(_ lines: [ArraySlice<UInt8>]) throws(Refusal) -> HeaderFields {
        var fields = HeaderFields()
        for line in lines {
            guard let colon = line.firstIndex(of: Grammar.colon) else { throw .badRequest }
            let name = line[..<colon]
            let value = line[line.index(after: colon)...]
            // A line that begins with a space would continue the line before (RFC 9112, section 5.2); such a
            // name is invalid too.
            guard !name.isEmpty, name.allSatisfy(Grammar.isToken), value.allSatisfy(Grammar.isFieldValue)
            else { throw .badRequest }
            let start = value.firstIndex { !Grammar.isWhitespace($0) } ?? value.endIndex
            let end = value.lastIndex { !Grammar.isWhitespace($0) }.map { $0 + 1 } ?? start
            fields.append(
                name: String(decoding: name, as: UTF8.self),
                value: String(decoding: value[start..<end], as: UTF8.self))
        }
        return fields
    }
}

/// Splits the bytes of a connection into requests.
struct RequestReader {
    private var bytes: [UInt8] = []
    /// The number of bytes that are known not to contain the end of a head.
    private var searched = 0

    /// True if there are no bytes.
    var isEmpty: Bool { bytes.isEmpty }

    /// The first line of the bytes, for the log.
    private(set) var requestLine = ""

    mutating func receive(_ more: some Collection<UInt8>) {
        // Empty lines before a request are ignored (RFC 9112, section 2.2).
        bytes += bytes.isEmpty ? Array(more.drop(while: Self.isLineEnd)) : Array(more)
    }

    /// The next request; nil if it is not complete.
    mutating func next() throws(ServedRequest.Refusal) -> ServedRequest? {
        requestLine = String(
            decoding: bytes.prefix { !Self.isLineEnd($0) }.prefix(ServerLimits.loggedLine), as: UTF8.self)
        guard let (end, next) = endOfHead(), end <= ServerLimits.headSize else {
            guard bytes.count <= ServerLimits.headSize else { throw .headTooLarge }
            return nil
        }
        defer {
            bytes = Array(bytes[next...].drop(while: Self.isLineEnd))
            searched = 0
        }
        return try ServedRequest(head: bytes[..<end])
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool {
        byte == Grammar.carriageReturn || byte == Grammar.lineFeed
    }

    /// The end of the head's last line, and the beginning of the bytes after the empty line.
    private mutating func endOfHead() -> (end: Int, next: Int)? {
        for index in searched..<bytes.count where bytes[index] == Grammar.lineFeed {
            var next = index + 1
            if next < bytes.count, bytes[next] == Grammar.carriageReturn { next += 1 }
            if next < bytes.count, bytes[next] == Grammar.lineFeed { return (index, next + 1) }
        }
        // The last two bytes may be the beginning of the end.
        searched = max(0, bytes.count - 2)
        return nil
    }
}
