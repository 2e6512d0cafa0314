/// Turns messages and control frames into bytes. `WebSocketState` decides what may be sent when.
struct WebSocketWriter: ~Copyable, Sendable {
    /// A message of which some frames have been made.
    struct Outgoing: Sendable {
        fileprivate let message: WebSocketMessage
        fileprivate let size: Int
        fileprivate let isCompressed: Bool
        /// The number of the message's bytes that are already in frames.
        fileprivate var position = 0
    }

    private let role: WebSocketRole
    /// The parameters that this end follows when it compresses; nil if it does not compress.
    private let compression: WebSocketCompression.Sender?
    /// Made for the first message that is compressed.
    private var deflater: MessageDeflater?
    /// Generates the masking keys.
    private var generator: any RandomNumberGenerator & Sendable

    init(
        _ role: WebSocketRole, compression: WebSocketCompression.Sender?,
        generator: any RandomNumberGenerator & Sendable
    ) {
        self.role = role
        // zlib cannot compress with a window of 256 bytes; in that case messages are sent uncompressed, which
        // is allowed.
        self.compression = compression.flatMap { $0.windowBits > 8 ? $0 : nil }
        self.generator = generator
    }

    // MARK: Messages

    mutating func start(_ message: WebSocketMessage, limits: WebSocketLimits) -> Outgoing {
        let size = message.size
        let isCompressed = size > 0 && size >= limits.minimumCompressedSize && prepareDeflater()
        return Outgoing(message: message, size: size, isCompressed: isCompressed)
    }

    /// Makes the deflater, unless it is there.
    ///
    /// - Returns: False if messages cannot be compressed: it was not agreed on, or there is no memory for it.
    private mutating func prepareDeflater() -> Bool {
        guard let compression else { return false }
        if deflater == nil {
            deflater = MessageDeflater(
                windowBits: compression.windowBits, keepsContext: compression.keepsContext)
        }
        return deflater != nil
    }

    /// Appends the next frame of a message.
    ///
    /// - Returns: Whether it was the last frame.
    mutating func writeFrame(
        of outgoing: inout Outgoing, limits: WebSocketLimits, into output: inout [UInt8]
    ) -> Bool {
        let range =
            outgoing.position..<min(outgoing.size, outgoing.position + max(1, limits.maximumSentFrameSize))
        let isFirst = range.lowerBound == 0
        let isLast = range.upperBound == outgoing.size
        outgoing.position = range.upperBound
        let header = WebSocketFrameHeader(
            isFinal: isLast, isCompressed: isFirst && outgoing.isCompressed,
            opcode: isFirst ? outgoing.message.opcode : .continuation, length: range.count)
        outgoing.message.withBytes { bytes in
            let piece = UnsafeRawBufferPointer(rebasing: bytes[range])
            if outgoing.isCompressed, let compressed = deflater?.deflate(piece, isLast: isLast) {
                compressed.withUnsafeBytes { write(header, $0, into: &output) }
            } else {
                write(header, piece, into: &output)
            }
        }
        return isLast
    }

    /// Makes sure that no later message refers to one before it, since the other end may not get that.
    mutating func forgetMessages() { deflater?.reset() }

    // MARK: Frames

    /// Appends a control frame, whose payload has at most 125 bytes.
    mutating func writeControl(_ opcode: WebSocketOpcode, _ payload: [UInt8], into output: inout [UInt8]) {
        let header = WebSocketFrameHeader(opcode: opcode, length: payload.count)
        payload.withUnsafeBytes { write(header, $0, into: &output) }
    }

    /// Appends a frame with this header; sets its length and, if this end masks, its mask.
    private mutating func write(
        _ header: WebSocketFrameHeader, _ payload: UnsafeRawBufferPointer, into output: inout [UInt8]
    ) {
        var header = header
        header.length = payload.count
        switch role {
        case .client: header.mask = WebSocketMask(using: &generator)
        case .server: break
        }
        output.reserveCapacity(output.count + WebSocketFrameHeader.maximumSize + payload.count)
        header.write(into: &output)
        let start = output.count
        output.append(contentsOf: payload)
        guard let mask = header.mask else { return }
        output.withUnsafeMutableBytes {
            mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]))
        }
    }
}
