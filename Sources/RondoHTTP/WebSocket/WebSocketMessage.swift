package import struct Foundation.Data

/// A complete message (RFC 6455 §5.6), as a program sends and receives it, however many frames carry it.
package enum WebSocketMessage: Sendable, Equatable {
    case text(String)
    case binary(Data)

    /// The number of payload bytes before compression; for text, of its UTF-8.
    package var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }

    var opcode: WebSocketOpcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }

    /// Calls `body` with the payload, which is valid for that call only.
    func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        switch self {
        case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .binary(let data): data.withUnsafeBytes(body)
        }
    }
}

/// A message of which some frames have been received.
struct IncomingMessage: Sendable {
    let isText: Bool
    let isCompressed: Bool
    private(set) var payload = Data()
    private var validator = UTF8Validator()

    init(_ header: WebSocketFrameHeader) {
        isText = header.opcode == .text
        isCompressed = header.isCompressed
    }

    /// Appends bytes of the payload, decompressed and unmasked. The first byte that cannot be text is an
    /// error at once (WS-12), even if later bytes exceed the limit; bytes beyond the limit are not stored
    /// (WS-11).
    mutating func append(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(WebSocketError) {
        let room = max(0, limit - payload.count)
        let kept = UnsafeRawBufferPointer(rebasing: bytes.prefix(room))
        if isText, !validator.accept(kept) { throw .peer(.invalidText) }
        if bytes.count > room { throw .peer(.messageTooLong(limit: limit)) }
        payload.append(contentsOf: kept)
    }

    /// The message, after its last frame.
    func finish() throws(WebSocketError) -> WebSocketMessage {
        guard isText else { return .binary(payload) }
        // The last character is incomplete.
        guard validator.isComplete else { throw .peer(.invalidText) }
        return .text(payload.withUnsafeBytes { Self.text($0) })
    }

    /// A message that came in one frame and one piece, so that none of it has to be stored.
    static func whole(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketError) -> WebSocketMessage {
        guard opcode == .text else { return .binary(Data(payload)) }
        guard UTF8Validator.isValid(payload) else { throw .peer(.invalidText) }
        return .text(text(payload))
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
