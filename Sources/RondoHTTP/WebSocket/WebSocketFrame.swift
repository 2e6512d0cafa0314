// The base framing of RFC 6455 §5.2. A header has at most 14 bytes and is read as a whole, from bytes that
// the caller has in one piece; the payload is not handled here.
//
//    bit  0        1..3   4..7     8      9..15    then 2 or 8 bytes   then 4 bytes
//         final    RSV    opcode   mask   length   of length           of the key
//
// The header alone is checked here. `WebSocketReader` checks whether its frame may come at this point.

/// The end of a connection.
package enum WebSocketRole: Sendable {
    /// A client masks its frames and accepts unmasked ones.
    case client
    case server
}

/// The kind of a frame (RFC 6455 §5.2). The numbers in between are reserved and not supported.
enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The header of a frame: checks, reads and writes it.
struct WebSocketFrameHeader: Sendable, Equatable {
    /// Whether this is the last frame of its message; true for every control frame.
    var isFinal = true
    /// RSV1: the message is compressed. Set only in a message's first frame (RFC 7692 §6).
    var isCompressed = false
    var opcode: WebSocketOpcode
    /// The number of bytes of the payload.
    var length: Int
    var mask: WebSocketMask?

    /// The number of bytes of the longest header.
    static let maximumSize = 14
    /// The most bytes of a control frame's payload (RFC 6455 §5.5).
    static let maximumControlLength = 125

    private static let finalBit: UInt8 = 0x80
    private static let compressedBit: UInt8 = 0x40
    private static let reservedBits: UInt8 = 0x70
    private static let maskBit: UInt8 = 0x80

    // MARK: Writing

    /// Appends the header, with its length in the shortest form.
    func write(into output: inout [UInt8]) {
        let flags = (isFinal ? Self.finalBit : 0) | (isCompressed ? Self.compressedBit : 0)
        output.append(flags | opcode.rawValue)
        let maskBit = mask == nil ? 0 : Self.maskBit
        switch length {
        case ...125:
            output.append(maskBit | UInt8(length))
        case ...0xFFFF:
            output.append(maskBit | 126)
            withUnsafeBytes(of: UInt16(length).bigEndian) { output.append(contentsOf: $0) }
        default:
            output.append(maskBit | 127)
            withUnsafeBytes(of: UInt64(length).bigEndian) { output.append(contentsOf: $0) }
        }
        mask?.write(into: &output)
    }

    // MARK: Reading

    /// Reads a header at the start of `bytes`.
    ///
    /// - Parameter receiver: The end that has received the frame.
    /// - Returns: The header and the number of its bytes; nil while some of them are missing. An error is
    ///   thrown as soon as the bytes that show it are there, and depends only on them.
    static func read(
        _ bytes: UnsafeRawBufferPointer, by receiver: WebSocketRole, mayBeCompressed: Bool
    ) throws(WebSocketError) -> (header: WebSocketFrameHeader, size: Int)? {
        guard let first = bytes.first else { return nil }
        let opcode = try opcode(in: first, mayBeCompressed: mayBeCompressed)
        guard bytes.count > 1 else { return nil }
        let second = bytes[1]
        try checkMask(second & maskBit != 0, receiver)
        let announced = Int(second & ~maskBit)
        if opcode.isControl, announced > maximumControlLength {
            throw .peer(.longControlFrame(opcode: opcode.rawValue))
        }
        let lengthSize = announced < 126 ? 0 : announced == 126 ? 2 : 8
        guard bytes.count >= 2 + lengthSize else { return nil }
        let field = UnsafeRawBufferPointer(rebasing: bytes[2..<2 + lengthSize])
        let length = lengthSize == 0 ? announced : try extendedLength(field)
        var header = WebSocketFrameHeader(
            isFinal: first & finalBit != 0, isCompressed: first & compressedBit != 0, opcode: opcode,
            length: length)
        guard receiver == .server else { return (header, 2 + lengthSize) }
        guard bytes.count >= 2 + lengthSize + 4 else { return nil }
        let key = bytes.loadUnaligned(fromByteOffset: 2 + lengthSize, as: UInt32.self)
        header.mask = WebSocketMask(bigEndian: UInt32(bigEndian: key))
        return (header, 2 + lengthSize + 4)
    }

    private static func opcode(
        in first: UInt8, mayBeCompressed: Bool
    ) throws(WebSocketError) -> WebSocketOpcode {
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw .peer(.unknownOpcode(first & 0x0F))
        }
        let isCompressible = mayBeCompressed && (opcode == .text || opcode == .binary)
        let reserved = isCompressible ? reservedBits & ~compressedBit : reservedBits
        if first & reserved != 0 { throw .peer(.reservedBits(first & reserved)) }
        if opcode.isControl, first & finalBit == 0 {
            throw .peer(.fragmentedControlFrame(opcode: opcode.rawValue))
        }
        return opcode
    }

    /// Checks the mask: a client masks each of its frames, a server none (RFC 6455 §5.1).
    private static func checkMask(_ isMasked: Bool, _ receiver: WebSocketRole) throws(WebSocketError) {
        switch receiver {
        case .client: if isMasked { throw .peer(.maskedFrame) }
        case .server: if !isMasked { throw .peer(.unmaskedFrame) }
        }
    }

    /// The length after 126 or 127, which must not fit a shorter form.
    private static func extendedLength(_ field: UnsafeRawBufferPointer) throws(WebSocketError) -> Int {
        let length = field.reduce(UInt64(0)) { $0 &<< 8 | UInt64($1) }
        if length < (field.count == 2 ? 126 : 0x1_0000) { throw .peer(.lengthNotShortest(length)) }
        guard let length = Int(exactly: length) else { throw .peer(.lengthTooLarge) }
        return length
    }
}
