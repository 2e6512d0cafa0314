package import struct Foundation.Data

/// The content of a close frame (RFC 6455 §5.5.1).
package struct WebSocketClose: Sendable, Equatable {
    /// Nil if the frame has no payload, which programs read as 1005 (§7.1.5).
    package let code: UInt16?
    /// UTF-8 in a received frame; empty without a code.
    package let reason: Data

    /// The most bytes of a reason: a control frame's payload without the code.
    package static let maximumReasonSize = WebSocketFrameHeader.maximumControlLength - 2

    /// A close frame without a payload.
    package static let empty = WebSocketClose(code: nil, reason: Data())

    private init(code: UInt16?, reason: Data) { (self.code, self.reason) = (code, reason) }

    /// A close frame to be sent (WS-17). The reason is cut to `maximumReasonSize`; if it is UTF-8, before the
    /// character that would be cut. A code that must not be sent makes the frame `empty`.
    package init(sending code: UInt16, reason: Data = Data()) {
        self =
            Self.canBeSent(code) ? WebSocketClose(code: code, reason: Self.fitted(reason)) : .empty
    }

    /// Reads the payload of a received frame (WS-20).
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

    /// The answer to this frame: one with the same code (§5.5.1).
    var answer: WebSocketClose {
        code.map { WebSocketClose(sending: $0) } ?? .empty
    }

    var payload: [UInt8] {
        guard let code else { return [] }
        return [UInt8(code >> 8), UInt8(code & 0xFF)] + reason
    }

    /// Whether a frame may contain `code`: the codes that RFC 6455 §7.4.1 defines for that, 1012 to 1014 of
    /// IANA's registry, and the two ranges of §7.4.2 for free use. 1004 to 1006 and 1015 must not be sent;
    /// the rest up to 2999 is reserved for later versions of the protocol.
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
            // The byte after the cut must begin a character.
            while reason[end] & 0xC0 == 0x80 { end -= 1 }
        }
        return Data(reason[..<end])
    }
}
