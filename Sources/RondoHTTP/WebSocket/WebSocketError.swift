/// The reason why a WebSocket connection cannot continue.
package enum WebSocketError: Error, Sendable, Equatable {
    /// The other end broke the rules, or closed the connection. Nothing more can be read.
    case peer(Peer)
    /// Our side was about to break the rules. Nothing was written, and the connection is unchanged.
    case local(Local)

    package enum Peer: Sendable, Equatable {
        // Frames (RFC 6455 §5, rule WS-13).

        /// Bits of a frame's first byte, in their places, that no agreed extension defines.
        case reservedBits(UInt8)
        case unknownOpcode(UInt8)
        case maskedFrame
        case unmaskedFrame
        case fragmentedControlFrame(opcode: UInt8)
        /// A control frame of more than 125 bytes.
        case longControlFrame(opcode: UInt8)
        case lengthNotShortest(UInt64)
        /// The top bit of the length is set.
        case lengthTooLarge
        /// A continuation frame although no message has begun.
        case unexpectedContinuation
        /// A new message before the previous one has ended.
        case interruptedMessage

        // Close frames (WS-20).

        /// A payload of one byte.
        case truncatedCloseCode
        case invalidCloseCode(UInt16)
        case invalidCloseReason

        // Messages (WS-11, WS-12, WS-24).

        /// Text that is not UTF-8.
        case invalidText
        /// `detail` is zlib's message, if there is one.
        case corruptCompression(detail: String)
        case messageTooLong(limit: Int)

        // The end of the connection (WS-21).

        /// The connection ended without a close frame, between two messages.
        case endedWithoutClose
        /// The connection ended in the middle of a frame, or of a fragmented message.
        case endedInsideMessage
    }

    package enum Local: Sendable, Equatable {
        /// A close frame of either side was sent, or the connection has failed.
        case notOpen
        /// The payload of a ping exceeds 125 bytes.
        case longPing(Int)
        /// Another message is being sent in fragments.
        case messageInProgress
        /// zlib could not allocate its memory.
        case outOfMemory
    }

    /// The code of the close frame that reports the failure (RFC 6455 §7.1.7); nil if no close frame is sent,
    /// because the other end has closed the connection or the connection has not failed.
    package var closeCode: UInt16? {
        switch self {
        case .peer(let fault): fault.closeCode
        case .local(.outOfMemory): 1011
        case .local(.notOpen), .local(.longPing), .local(.messageInProgress): nil
        }
    }
}

extension WebSocketError.Peer {
    var closeCode: UInt16? {
        switch self {
        case .reservedBits, .unknownOpcode, .maskedFrame, .unmaskedFrame, .fragmentedControlFrame,
            .longControlFrame, .lengthNotShortest, .lengthTooLarge, .unexpectedContinuation,
            .interruptedMessage, .truncatedCloseCode, .invalidCloseCode:
            1002
        case .invalidCloseReason, .invalidText, .corruptCompression: 1007
        case .messageTooLong: 1009
        case .endedWithoutClose, .endedInsideMessage: nil
        }
    }
}

// MARK: - For people

extension WebSocketError: CustomStringConvertible {
    /// A sentence for people.
    package var description: String {
        switch self {
        case .peer(let fault): fault.description
        case .local(let fault): fault.description
        }
    }
}

extension WebSocketError.Peer: CustomStringConvertible {
    package var description: String {
        switch self {
        case .reservedBits:
            "A WebSocket frame has a reserved bit set, without an extension that would use it."
        case .unknownOpcode(let opcode): "A WebSocket frame has the unknown opcode \(opcode)."
        case .maskedFrame: "The server masked a WebSocket frame, which only clients do."
        case .unmaskedFrame: "The client did not mask a WebSocket frame."
        case .fragmentedControlFrame(let opcode): "A WebSocket \(Self.name(opcode)) frame came in fragments."
        case .longControlFrame(let opcode):
            "A WebSocket \(Self.name(opcode)) frame has more than \(WebSocketFrameHeader.maximumControlLength) bytes."
        case .lengthNotShortest(let length):
            "The length \(length) of a WebSocket frame is not in its shortest form."
        case .lengthTooLarge: "The length of a WebSocket frame exceeds 2⁶³ − 1."
        case .unexpectedContinuation: "A WebSocket frame continues a message that has not begun."
        case .interruptedMessage: "A WebSocket message began before the one before had ended."
        case .truncatedCloseCode: "A WebSocket close frame has one byte, which is half a code."
        case .invalidCloseCode(let code):
            "A WebSocket close frame has the code \(code), which must not be sent."
        case .invalidCloseReason: "The reason in a WebSocket close frame is not UTF-8."
        case .invalidText: "A WebSocket text message is not UTF-8."
        case .corruptCompression(let detail):
            "A WebSocket message cannot be decompressed" + (detail.isEmpty ? "." : ": \(detail).")
        case .messageTooLong(let limit): "A WebSocket message is longer than \(limit) bytes."
        case .endedWithoutClose: "The WebSocket connection ended without a close frame."
        case .endedInsideMessage: "The WebSocket connection ended in the middle of a message."
        }
    }

    private static func name(_ opcode: UInt8) -> String {
        switch WebSocketOpcode(rawValue: opcode) {
        case .close: "close"
        case .ping: "ping"
        case .pong: "pong"
        case .continuation, .text, .binary, nil: "control"
        }
    }
}

extension WebSocketError.Local: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notOpen: "The WebSocket is closed."
        case .longPing(let count):
            "A WebSocket ping of \(count) bytes cannot be sent: it may have "
                + "\(WebSocketFrameHeader.maximumControlLength)."
        case .messageInProgress: "Another WebSocket message is being sent."
        case .outOfMemory: "There is no memory to decompress a WebSocket message."
        }
    }
}
