internal import CRondoZlib

// A message's compressed payload is a piece of one DEFLATE stream, cut off behind a flush: the four bytes that every
// flush ends in are not sent (RFC 7692 §7.2.1) and are put back here. A sender may also end the stream in a message
// (§7.2.3.4) and go on with a new one, whose references may still reach back over the end; so what ended is set going
// again with its window. `inflateResetKeep` does that without a copy of the window: two bytes can be an ended stream, and
// a copy of 32 KiB for each would be work that a server could make at will.

/// Decompresses the messages that one end of a connection sends (RFC 7692 §7.2.2).
struct MessageInflater: ~Copyable {
    /// What one call did.
    struct Step {
        var consumed: Int
        var produced: Int
        /// The error in the input; it comes with the output that was made before.
        var fault: String?
    }

    /// Owned, on the heap because zlib compares its address; freed in `deinit`.
    private let stream: UnsafeMutablePointer<z_stream>
    private let keepsContext: Bool
    /// Something of the current message has been read.
    private var hasInput = false
    /// The stream ended with the last byte that was read.
    private var hasEnded = false

    // Parts of `data_type`, as zlib.h describes them at `inflate`.
    private static let unusedBits: Int32 = 63
    private static let lastBlock: Int32 = 64
    private static let blockEnd: Int32 = 128

    /// - Parameters:
    ///   - windowBits: 8 to 15: how far back the sender refers, as a power of two.
    ///   - keepsContext: Whether messages may refer to those before.
    init(windowBits: Int, keepsContext: Bool) throws(WebSocketError) {
        self.keepsContext = keepsContext
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // `inflateInit2` is a macro over this; the minus says that there is no header.
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

    /// The four bytes that a sender omits at each message's end (§7.2.1); inflated after it.
    static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    /// Decompresses some of `input` into `output`. All of it has come out once nothing is left to consume and `output` was
    /// not filled.
    ///
    /// - Parameter isTail: It is `tail`, or what was not consumed of it. `endMessage()` follows.
    mutating func inflate(
        _ input: UnsafeRawBufferPointer, isTail: Bool, into output: UnsafeMutableRawBufferPointer
    ) -> Step {
        guard isTail else {
            hasInput = hasInput || !input.isEmpty
            return run(input, into: output, Z_SYNC_FLUSH)
        }
        // Some senders leave out the empty block behind a stream that ends with its message, and some send nothing at all
        // as an empty message. Neither is right (§7.2.1, §7.2.3.6), neither can be mistaken.
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
        // For this call only. zlib declares its input as mutable and does not write to it.
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
                // With Z_BLOCK it stops at the end of each block.
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

/// `@unchecked Sendable`: the stream belongs to this value alone, which cannot be copied, and zlib ties it to no thread.
extension MessageInflater: @unchecked Sendable {}
