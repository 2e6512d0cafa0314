/// How much of each part of a response is accepted before the server is called faulty. A body has no limit
/// here: it is handed on as it comes and nothing of it is kept.
package struct HTTP1Limits: Sendable, Equatable {
    /// Bytes of a status line without its line end. Python's http.client takes 64 KiB, llhttp has no limit;
    /// RFC 9112 §3 asks for 8,000 of the other first line.
    package var maximumStatusLineLength = 8 * 1024

    /// Bytes of a head: status line, header section and the empty line after it. As Chromium
    /// (`HttpStreamParser::kMaxHeaderBufSize`, 256 KiB); curl takes 300 KiB, Node 16 KiB.
    package var maximumHeadSize = 256 * 1024

    /// Fields in one header or trailer section. Between hyper's and Python's 100, which some sites exceed by
    /// their Set-Cookie alone, and curl's 5,000.
    package var maximumFieldCount = 1_000

    /// Interim responses before the final one. Go once allowed 5, too few for a `102 Processing` every 20
    /// seconds (RFC 2518 §10.1) during half an hour.
    package var maximumInformationalResponses = 100

    /// Empty lines skipped before a status line. RFC 9112 §2.2 asks servers to skip at least one; Chromium
    /// looks for the status line in the first 4 bytes more than its own.
    package var maximumEmptyLines = 4

    /// Bytes of the line before each chunk, without its line end: size, padding and extensions. As Go
    /// (`net/http/internal/chunked.go`, `maxLineLength`).
    package var maximumChunkLineLength = 4 * 1024

    /// Bytes of a trailer section with the empty line after it. As hyper (`TRAILER_LIMIT`, 16 KiB).
    package var maximumTrailerSize = 16 * 1024

    package init() {}
}
