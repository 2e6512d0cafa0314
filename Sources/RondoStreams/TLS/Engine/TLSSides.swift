/// The state that the last read has left behind.
///
/// `TLSEngine+Bytes` sets it by the result of each `SSL_read_ex`, and by the number of bytes that came.
struct TLSReadingSide {
    /// True if the last read waits until the socket can be written to.
    var needsWrite = false
    /// True if the last read has left a part of a record behind, because its buffer was full.
    var hasRestOfRecord = false
    /// True if the last read has met the end or a failure behind its bytes; the socket will not become
    /// readable for that.
    var hasUnreadOutcome = false
}

/// The bytes that writing has still to send, and how far it has come in ending.
///
/// The extensions of `TLSEngine` change it after their calls of OpenSSL, whose results say which bytes wait:
/// `+Bytes` writes, `+Handshake` sends close_notify, and `+Readiness` repeats both when the socket is ready.
struct TLSWritingSide {
    /// Bytes that the socket has not taken yet, of which OpenSSL has encrypted the first record.
    var unsent: [UInt8]?
    /// True if the last write waits until the socket can be read.
    var needsRead = false
    /// A failure that ends writing only.
    var failure: TLSError?
    var end = End.notOwed

    /// Whether the peer knows that this side will send no more (close_notify).
    enum End {
        /// close_notify is not to be sent, or cannot be, because the connection has failed.
        case notOwed
        /// close_notify must be sent once the bytes written before it are gone.
        case owed
        /// close_notify has gone out.
        case sent
    }

    /// Drops the bytes that wait for the socket: after a failure nothing more is sent.
    mutating func stop() {
        unsent = nil
        needsRead = false
    }
}
