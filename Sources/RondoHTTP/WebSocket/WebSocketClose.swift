package import struct Foundation.Data

/// What a close frame says (RFC 6455 §5.5.1).
package struct WebSocketClose: Sendable, Equatable {
    /// Nil: the frame has no payload, which reads as 1005 (§7.1.5).
    package let code: UInt16?
    /// In UTF-8 where it was received; empty without a code.
    package let reason: Data

    /// Bytes of the longest reason: a control frame's payload without the code.
    package static let maximumReasonSize = WebSocketFrameHeader.maximumControlLength - 2

    /// Without a payload.
    package static let empty = WebSocketClose(code: nil, reason: Data())

    private init(code: UInt16?, reason: Data) { (self.code, self.reason) = (code, reason) }

    /// One to be sent (WS-17): the reason is cut to `maximumReasonSize`, before the character that would be cut if it is
    /// UTF-8. A code that must not be sent makes it `empty`.
    package init(sending code: UInt16, reason: Data = Data()) {
        self =
            Self.canBeSent(code) ? WebSocketClose(code: code, reason: Self.fitted(reason)) : .empty
    }

    /// The payload of a frame that was received (WS-20).
    init(_ payload: UnsafeRawBufferPointer) throws(WebSocketError) {
        switch payload.count {
        case 0:
            self = .empty
        case 1:
            throw .peer(.truncatedCloseCode)
        default:
            let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
            guard Self.canBeSent(code) else { throw .peer(.invalidCloseCode(code)) }
            let reason = UnsafeRawBufferPointer(rebasing: payload.dropFirst(2))
            guard UTF8Validator.isValid(reason) else { throw .peer(.invalidCloseReason) }
            self = WebSocketClose(code: code, reason: Data(reason))
        }
    }

    /// The answer to this one: a frame with the same code (§5.5.1).
    var answer: WebSocketClose {
        code.map { WebSocketClose(sending: $0) } ?? .empty
    }

    var payload: [UInt8] {
        guard let code else { return [] }
        return [UInt8(code >> 8), UInt8(code & 0xFF)] + reason
    }

    /// Whether a frame may hold `code`: those that RFC 6455 §7.4.1 defines for that, 1012 to 1014 of IANA's registry, and
    /// the two ranges of §7.4.2 that are free to use. 1004 to 1006 and 1015 are for programs to read, never for the wire;
    /// the rest up to 2999 is kept for later versions of the protocol.
    package static func canBeSent(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    private static func fitted(_ reason: Data) -> Data {
        guard reason.count > maximumReasonSize else { return reason }
        var end = reason.startIndex + maximumReasonSize
        if reason.withUnsafeBytes(UTF8Validator.isValid) {
            // The byte behind the cut must begin a character.
            while reason[end] & 0xC0 == 0x80 { end -= 1 }
        }
        return Data(reason[..<end])
    }
}
