internal import CRondoZlib

/// Decodes gzip (RFC 1952), and DEFLATE with zlib's header (RFC 1950) or without (RFC 1951).
final class ZlibDecoder: CodingDecoder {
    enum Format { case gzip, deflate }

    private enum State {
        /// Reading the first bytes of `deflate`, which show whether it has zlib's header.
        case sniffing(ContinuationProbe)
        case decoding
        /// Between two members of a gzip file, which is a series of them (RFC 1952 §2.2).
        case betweenMembers(ContinuationProbe)
        /// The content is complete; further bytes are ignored.
        case ended
    }

    private let format: Format
    private var state: State
    /// Owned: freed in `deinit`. On the heap, because zlib compares its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isOpen = false
    private var sawInput = false
    /// The last block of the content has been decoded.
    private var hasAllContent = false

    // Bits of `data_type`, described in zlib.h at `inflate`.
    private static let lastBlock: Int32 = 64
    private static let blockEnd: Int32 = 128

    var coding: ContentCoding { format == .gzip ? .gzip : .deflate }

    init(_ format: Format) throws(ContentDecodingError) {
        self.format = format
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        switch format {
        case .gzip:
            state = .decoding
            try open(windowBits: MAX_WBITS + 16)
        case .deflate:
            // RFC 1950 §2.2: method 8 in the low bits, and a multiple of 31.
            state = .sniffing(
                ContinuationProbe(length: 2) { bytes in
                    bytes[0] & 0x0F == 8 && (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0
                })
        }
    }

    deinit {
        if isOpen { inflateEnd(stream) }
        stream.deallocate()
    }

    private func open(windowBits: Int32) throws(ContentDecodingError) {
        // `inflateInit2` is a macro over this.
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, windowBits, ZLIB_VERSION, size) == Z_OK else {
            throw .outOfMemory(coding)
        }
        isOpen = true
    }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> DecoderStep
    {
        if !input.isEmpty { sawInput = true }
        switch state {
        case .ended:
            return DecoderStep(consumed: input.count, produced: 0)
        case .sniffing(var probe):
            let taken = probe.take(input)
            state = .sniffing(probe)
            guard probe.verdict != .undecided else { return DecoderStep(consumed: taken, produced: 0) }
            try open(windowBits: probe.verdict == .more ? MAX_WBITS : -MAX_WBITS)
            state = .decoding
            return try resume(with: probe.bytes, after: taken, of: input, into: output)
        case .betweenMembers(var probe):
            let taken = probe.take(input)
            switch probe.verdict {
            case .undecided:
                state = .betweenMembers(probe)
                return DecoderStep(consumed: taken, produced: 0)
            case .other:
                state = .ended
                return DecoderStep(consumed: input.count, produced: 0)
            case .more:
                inflateReset(stream)
                hasAllContent = false
                state = .decoding
                return try resume(with: probe.bytes, after: taken, of: input, into: output)
            }
        case .decoding:
            return try inflate(input, into: output)
        }
    }

    /// Decodes the bytes that the probe has taken, then the rest of the input.
    private func resume(
        with bytes: [UInt8], after taken: Int, of input: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecodingError) -> DecoderStep {
        let step = try bytes.withUnsafeBufferPointer { (bytes) throws(ContentDecodingError) in
            try inflate(UnsafeRawBufferPointer(bytes), into: output)
        }
        // Two bytes make no output, but they may be the whole content and end it.
        if step.produced > 0 || taken == input.count {
            return DecoderStep(consumed: taken, produced: step.produced)
        }
        var rest = try decode(UnsafeRawBufferPointer(rebasing: input[taken...]), into: output)
        rest.consumed += taken
        return rest
    }

    private func inflate(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> DecoderStep
    {
        // These pointers are valid for this call only. zlib declares its input as mutable but does not write
        // to it.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(clamping: input.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(clamping: output.count)
        var result = Z_OK
        repeat {
            // Z_BLOCK stops at the end of each block, so that the end of the last block is seen.
            let (before, room) = (stream.pointee.avail_in, stream.pointee.avail_out)
            result = CRondoZlib.inflate(stream, Z_BLOCK)
            let isAtBlockEnd = stream.pointee.data_type & Self.blockEnd != 0
            if isAtBlockEnd, stream.pointee.data_type & Self.lastBlock != 0 { hasAllContent = true }
            let hasMoved = stream.pointee.avail_in < before || stream.pointee.avail_out < room
            // At the end of a block zlib may already hold bits of the next one.
            guard hasMoved || isAtBlockEnd else { break }
        } while (result == Z_OK || result == Z_BUF_ERROR) && stream.pointee.avail_out > 0
        let step = DecoderStep(
            consumed: min(input.count, Int(UInt32.max)) - Int(stream.pointee.avail_in),
            produced: min(output.count, Int(UInt32.max)) - Int(stream.pointee.avail_out))
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        switch result {
        case Z_OK, Z_BUF_ERROR:
            return step
        case Z_STREAM_END:
            state = format == .gzip ? .betweenMembers(Self.memberProbe) : .ended
            return step
        case Z_MEM_ERROR:
            throw .outOfMemory(coding)
        default:
            throw .corrupt(coding, detail: stream.pointee.msg.map { String(cString: $0) } ?? "")
        }
    }

    private static var memberProbe: ContinuationProbe {
        ContinuationProbe(length: 2) { $0 == [0x1F, 0x8B] }
    }

    func finish() throws(ContentDecodingError) {
        switch state {
        case .ended, .betweenMembers: return
        case .sniffing, .decoding:
            // Some servers omit the checksum and the length after the content.
            if sawInput && !hasAllContent { throw .truncated(coding) }
        }
    }
}
