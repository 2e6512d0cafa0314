/// Limits for the parts of a response, beyond which the server counts as faulty. A body has no limit here: it
/// is passed on as it arrives and not stored.
package struct HTTP1Limits: Sendable, Equatable {
    /// Bytes of a status line without its line end. Python's http.client accepts 64 KiB, llhttp has no limit;
    /// RFC 9112 §3 asks for 8,000 for a request line.
    package var maximumStatusLineLength = 8 * 1024

    /// Bytes of a head: status line, header section and the empty line after it. As Chromium
    /// (`HttpStreamParser::kMaxHeaderBufSize`, 256 KiB); curl accepts 300 KiB, Node 16 KiB.
    package var maximumHeadSize = 256 * 1024

    /// The number of fields in one header or trailer section. Between hyper's and Python's 100, which some
    /// sites exceed with Set-Cookie alone, and curl's 5,000.
    package var maximumFieldCount = 1_000

    /// The number of interim responses before the final one. Go once allowed 5, too few for a `102
    /// Processing` every 20 seconds (RFC 2518 §10.1) during half an hour.
    package var maximumInformationalResponses = 100

    /// The number of empty lines skipped before a status line. RFC 9112 §2.2 asks servers to skip at least
    /// one; Chromium looks for the status line up to 4 bytes further on.
    package var maximumEmptyLines = 4

    /// Bytes of the line before each chunk, without its line end: size, padding and extensions. As Go
    /// (`net/http/internal/chunked.go`, `maxLineLength`).
    package var maximumChunkLineLength = 4 * 1024

    /// Bytes of a trailer section with the empty line after it. As hyper (`TRAILER_LIMIT`, 16 KiB).
    package var maximumTrailerSize = 16 * 1024

    package init() {}
}
