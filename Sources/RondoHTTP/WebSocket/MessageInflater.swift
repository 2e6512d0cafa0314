internal import CRondoZlib

// A message's compressed payload is a piece of one DEFLATE stream that ends with a flush: the last four bytes
// of each flush are not sent (RFC 7692 §7.2.1) and are added again here. A sender may also end the stream in
// a message (§7.2.3.4) and continue with a new one, whose references may still reach back over the end; so an
// ended stream is restarted with its window. `inflateResetKeep` does that without copying the window: an
// ended stream may be two bytes long, and a server could cause a copy of 32 KiB for each at will.

/// Decompresses the messages that one end of a connection sends (RFC 7692 §7.2.2).
struct MessageInflater: ~Copyable {
    /// The result of one call.
    struct Step {
        var consumed: Int
        var produced: Int
        /// The error in the input; the output produced before it is returned too.
        var fault: String?
    }

    /// Owned: freed in `deinit`. On the heap, because zlib compares its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private let keepsContext: Bool
    /// Some input of the current message has been read.
    private var hasInput = false
    /// The stream ended with the last byte read.
    private var hasEnded = false

    // Parts of `data_type`, described in zlib.h at `inflate`.
    private static let unusedBits: Int32 = 63
    private static let lastBlock: Int32 = 64
    private static let blockEnd: Int32 = 128

    /// - Parameters:
    ///   - windowBits: 8 to 15: the distance of the sender's back-references, as a power of two.
    ///   - keepsContext: Whether messages may refer to earlier ones.
    init(windowBits: Int, keepsContext: Bool) throws(WebSocketError) {
        self.keepsContext = keepsContext
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // `inflateInit2` is a macro over this; the negative number means that there is no header.
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, -Int32(windowBits), ZLIB_VERSION, size) == Z_OK else {
            stream.deallocate()
            throw .local(.outOfMemory)
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// The four bytes that a sender omits at the end of each message (§7.2.1); inflated after the message.
    static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    /// Decompresses some of `input` into `output`. All output has been produced once no input is left and
    /// `output` is not full.
    ///
    /// - Parameter isTail: Whether `input` is `tail`, or the unconsumed rest of it. `endMessage()` follows.
    mutating func inflate(
        _ input: UnsafeRawBufferPointer, isTail: Bool, into output: UnsafeMutableRawBufferPointer
    ) -> Step {
        guard isTail else {
            hasInput = hasInput || !input.isEmpty
            return run(input, into: output, Z_SYNC_FLUSH)
        }
        // Some senders omit the empty block after a stream that ends with its message, and some send nothing
        // at all as an empty message. Both violate the RFC (§7.2.1, §7.2.3.6), but neither is ambiguous.
        guard hasInput, !hasEnded else { return Step(consumed: input.count, produced: 0) }
        return run(input, into: output, Z_BLOCK)
    }

    /// - Returns: False if the message ended in the middle of a block.
    mutating func endMessage() -> Bool {
        let end = stream.pointee.data_type
        let isWhole = end & Self.blockEnd != 0 && end & Self.unusedBits == 0
        guard isWhole || hasEnded || !hasInput else { return false }
        if !keepsContext {
            inflateReset(stream)
        } else if hasEnded || end & Self.lastBlock != 0 {
            inflateResetKeep(stream)
        }
        (hasInput, hasEnded) = (false, false)
        return true
    }

    private mutating func run(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ flush: Int32
    ) -> Step {
        let inputCount = UInt32(clamping: input.count)
        let outputCount = UInt32(clamping: output.count)
        // These pointers are valid for this call only. zlib declares its input as mutable but does not write
        // to it.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = inputCount
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = outputCount
        defer {
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        var fault: String?
        loop: while true {
            if hasEnded {
                guard stream.pointee.avail_in > 0 else { break }
                inflateResetKeep(stream)
                hasEnded = false
            }
            let (unread, room) = (stream.pointee.avail_in, stream.pointee.avail_out)
            switch CRondoZlib.inflate(stream, flush) {
            case Z_STREAM_END:
                hasEnded = true
            case Z_OK, Z_BUF_ERROR:
                // Z_BLOCK makes zlib stop at the end of each block.
                let hasMoved = stream.pointee.avail_in < unread || stream.pointee.avail_out < room
                guard hasMoved, stream.pointee.avail_in > 0, stream.pointee.avail_out > 0 else { break loop }
            case Z_MEM_ERROR:
                fault = "there is no memory"
                break loop
            default:
                fault = stream.pointee.msg.map { String(cString: $0) } ?? ""
                break loop
            }
        }
        return Step(
            consumed: Int(inputCount - stream.pointee.avail_in),
            produced: Int(outputCount - stream.pointee.avail_out), fault: fault)
    }
}

/// `@unchecked Sendable`: only this value owns the stream, it cannot be copied, and zlib ties the stream to
/// no thread.
extension MessageInflater: @unchecked Sendable {}
