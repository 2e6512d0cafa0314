/// A parsed status line, such as `HTTP/1.1 200 OK` (RFC 9112 §4).
struct StatusLine: Sendable {
    let version: HTTPVersion
    let status: Int
    let reason: String

    private static let name: StaticString = "HTTP/"

    /// Whether the first bytes of a line can still become a status line, judged by the protocol's name only.
    static func canBegin(with bytes: some Collection<UInt8>) -> Bool {
        bytes.prefix(name.utf8CodeUnitCount).elementsEqual(name.utf8Bytes.prefix(bytes.count))
    }

    /// Reads a line without its line end.
    ///
    /// Strict, with two exceptions: the space before an empty reason may be missing, as it often is, and the
    /// reason may contain control characters, since nothing depends on it (RFC 9112 §4).
    init(_ line: UnsafeRawBufferPointer) throws(HTTP1Error) {
        func isDigit(_ index: Int) -> Bool { Grammar.isDigit(line[index]) }
        var invalid: HTTP1Error { .peer(.invalidStatusLine(excerpt: Grammar.excerpt(line))) }

        // HTTP/1.1 200 OK
        // 0    5 7 9  12
        guard line.count >= 8, Self.canBegin(with: line), isDigit(5), line[6] == 0x2E, isDigit(7) else {
            throw invalid
        }
        version = HTTPVersion(major: line[5] - 0x30, minor: line[7] - 0x30)
        if version.major != 1 { throw .peer(.unsupportedVersion(major: version.major, minor: version.minor)) }
        guard line.count >= 12, line[8] == Grammar.space, isDigit(9), isDigit(10), isDigit(11) else {
            throw invalid
        }
        status = Int(line[9] - 0x30) * 100 + Int(line[10] - 0x30) * 10 + Int(line[11] - 0x30)
        if status < 100 { throw invalid }
        if line.count == 12 {
            reason = ""
            return
        }
        let rest = UnsafeRawBufferPointer(rebasing: line[13...])
        // The reason is nearly always "OK".
        if line[12] == Grammar.space, rest.count == 2, rest[0] == 0x4F, rest[1] == 0x4B {
            reason = "OK"
            return
        }
        guard line[12] == Grammar.space, !rest.contains(where: Grammar.endsLine) else { throw invalid }
        reason = HeaderFields.text(rest.bindMemory(to: UInt8.self))
    }
}
