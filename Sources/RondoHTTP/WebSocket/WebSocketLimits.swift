/// Limits for the messages that a WebSocket connection receives and sends.
package struct WebSocketLimits: Sendable, Equatable {
    /// The most bytes of a received message, decompressed and with all its fragments (WS-11). As Apple's
    /// `maximumMessageSize`.
    package var maximumMessageSize = 1_048_576

    /// The most payload bytes of a sent frame, before compression; a longer message is sent in fragments. A
    /// pong can be sent only between two frames, and a frame is made in one step. Chromium's fragments have
    /// 128 KiB, and some small servers do not support fragments at all: so messages of usual length are one
    /// frame.
    package var maximumSentFrameSize = 1_048_576

    /// The size in bytes from which on a message is compressed, if that was agreed on (WS-24). A shorter
    /// message would gain a few bytes at a cost for both ends.
    package var minimumCompressedSize = 64

    package init() {}
}
