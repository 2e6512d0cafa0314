/// What the server of `rondo serve` grants its clients.
enum ServerLimits {
    /// Connections at a time. One more takes the place of the one that has been idle longest; if none is idle, it is
    /// refused (503).
    static let connections = 256
    /// Bytes of a request's head, as nginx has it for all fields together (large_client_header_buffers, halved).
    static let headSize = 16 << 10
    /// Seconds from the first byte of a head to its last.
    static let headTime = 10.0
    /// Seconds that a connection may lie idle between requests, and before the first one.
    static let idleTime = 75.0
    /// Seconds in which a client may take none of the bytes sent. Long, because a paused load takes none.
    static let stallTime = 600.0
    /// Seconds for a client to close after an answer that ends the connection, and the bytes of it that are thrown away.
    static let lingerTime = 2.0
    static let lingerSize = 1 << 20
    /// The send buffer of a throttled connection: with little under way, the rate is what the client sees.
    static let throttledSendBuffer: Int32 = 32 << 10
    /// Bytes that are sent at once.
    static let pieceSize = 64 << 10
    /// Parts of one answer; a request for more gets the whole (RFC 9110, section 14.2).
    static let ranges = 32
    /// Made-up bytes of one answer, and bytes of an answer in several parts: far enough from the largest number.
    static let size = 1 << 60
    /// Entries of a folder that a page lists.
    static let listedEntries = 10_000
    /// Characters of a request's line in the log.
    static let loggedTarget = 300
}
