package import struct Foundation.Data

/// One whole message (RFC 6455 §5.6): what a program sends and gets, however many frames carried it.
package enum WebSocketMessage: Sendable, Equatable {
    case text(String)
    case binary(Data)

    /// Bytes of the payload before compression; text counts in UTF-8.
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

    /// Shows the payload to `body` for that call.
    func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        switch self {
        case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .binary(let data): data.withUnsafeBytes(body)
        }
    }
}

/// A message of which some frames have come.
struct IncomingMessage: Sendable {
    let isText: Bool
    let isCompressed: Bool
    private(set) var payload = Data()
    private var validator = UTF8Validator()

    init(_ header: WebSocketFrameHeader) {
        isText = header.opcode == .text
        isCompressed = header.isCompressed
    }

    /// Appends bytes of the payload, decompressed and unmasked. The first byte that cannot be text is an error at once
    /// (WS-12), whatever the limit says of later ones; what exceeds the limit is not kept (WS-11).
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
        // A character whose last bytes never came.
        guard validator.isComplete else { throw .peer(.invalidText) }
        return .text(payload.withUnsafeBytes { Self.text($0) })
    }

    /// A message that came in one frame and one piece: nothing of it has to be kept meanwhile.
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
