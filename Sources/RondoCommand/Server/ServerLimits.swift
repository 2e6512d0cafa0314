/// What the server of `rondo serve` grants a client.
enum ServerLimits {
    /// Connections at a time; more are refused with 503.
    static let connections = 64
    /// Bytes of a request head, as nginx has it for one field (large_client_header_buffers).
    static let headSize = 8 << 10
    /// Seconds from the first byte of a head to its last.
    static let headTime = 10.0
    /// Seconds that a connection may lie idle between requests.
    static let idleTime = 75.0
    /// Seconds in which a client may take none of what is sent. Long, because a paused load takes none.
    static let stallTime = 600
    /// Seconds for a client to close after an answer that ends the connection.
    static let lingerTime = 1.0
    /// The send buffer of a throttled connection: with little under way, the rate is what the client
    /// sees.
    static let throttledSendBuffer: Int32 = 32 << 10
    static let pieceSize = 64 << 10
}
