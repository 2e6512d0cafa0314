/// What a WebSocket connection takes and makes at most.
package struct WebSocketLimits: Sendable, Equatable {
    /// Bytes of a message that is received, decompressed and of all its fragments together (WS-11). As Apple's
    /// `maximumMessageSize`.
    package var maximumMessageSize = 1_048_576

    /// Payload bytes of a frame that is sent, before compression; a longer message goes in fragments. A pong can go out
    /// between two frames only, and a frame is made at once. Chromium's fragments have 128 KiB, some small servers know no
    /// fragments at all: so messages of usual length are one frame.
    package var maximumSentFrameSize = 1_048_576

    /// Bytes from which on a message is compressed where that was agreed (WS-24). The gain on a shorter one is a few bytes,
    /// and both ends work for it.
    package var minimumCompressedSize = 64

    package init() {}
}
