/// The limits of `rondo serve` for its clients.
enum ServerLimits {
    /// Connections at a time. A further one replaces the one that has been idle for longest; if none is idle,
    /// the one whose client has taken nothing for longest, if for more than `yieldTime`; otherwise it is
    /// refused with 503.
    static let connections = 256
    /// Bytes of a request's head: half of nginx's limit for all fields together
    /// (large_client_header_buffers).
    static let headSize = 16 << 10
    /// Seconds from the first byte of a head to its last.
    static let headTime = 10.0
    /// Seconds that a connection may be idle between requests, and before the first.
    static let idleTime = 75.0
    /// Seconds after which a connection is closed if its client has taken nothing. The time is long, because
    /// a paused load takes nothing.
    static let stallTime = 600.0
    /// Seconds after which such a connection makes room for another one where there is none.
    static let yieldTime = 10.0
    /// Seconds for a client to close after the last answer, and the bytes from it that are discarded
    /// meanwhile.
    static let lingerTime = 2.0
    static let lingerSize = 1 << 20
    /// Bytes that the kernel may hold unsent for a client. As they drain, the client counts as reading.
    static let unsentBytes: Int32 = 64 << 10
    /// The send buffer of a throttled connection. It is small, so that the client sees the rate.
    static let throttledSendBuffer: Int32 = 32 << 10
    /// Bytes that are sent at once.
    static let pieceSize = 64 << 10
    /// Parts of one answer. A request for more gets the whole (RFC 9110, section 14.2).
    static let ranges = 32
    /// Made-up bytes of one answer, and bytes of an answer in several parts: sums with it do not overflow.
    static let size = 1 << 60
    /// Entries of a folder that a page lists.
    static let listedEntries = 10_000
    /// Bytes of a request's line in the log.
    static let loggedLine = 300
}
