internal import CRondoLibraries
internal import RondoLibraries

/// Decodes Zstandard (RFC 8878), a series of frames.
///
/// libzstd decodes a frame that it gets as a whole differently from one that it gets in pieces: it then
/// ignores the limit of the window. And if the last block of a frame is empty, libzstd does not check the
/// frame's size against the header. So this decoder passes the bytes of a header one at a time, and checks
/// the size itself.
final class ZstdDecoder: CodingDecoder {
    /// The largest window, as a power of two: 8 MiB, the most that this content coding may use (RFC 9659).
    static let maximumWindowLog: Int32 = 23

    private enum State {
        /// Before a frame, also the first one, its beginning is checked here: libzstd, as Debian builds it,
        /// also decodes formats older than the standard, for which it ignores the limit of the window.
        case beforeFrame(ContinuationProbe, isFirst: Bool)
        /// The bytes of the header that have been decoded.
        case header([UInt8])
        /// The number of bytes still to come, if the header gives the size.
        case decoding(left: UInt64?)
        case ended
    }

    var coding: ContentCoding { .zstd }
    /// Owned: freed in `deinit`.
    private let context: OpaquePointer
    private let library: Zstandard
    private var state = State.beforeFrame(ZstdDecoder.frameProbe, isFirst: true)

    init() throws(ContentDecodingError) {
        guard let library = Zstandard.library else { throw .missingLibrary(.zstd) }
        guard let context = library.create() else { throw .outOfMemory(.zstd) }
        (self.context, self.library) = (context, library)
        _ = library.set(context, Int32(rondo_zstd_window_log_max), Self.maximumWindowLog)
    }

    deinit { _ = library.free(context) }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> DecoderStep
    {
        switch state {
        case .ended:
            return DecoderStep(consumed: input.count, produced: 0)
        case .beforeFrame(var probe, let isFirst):
            let taken = probe.take(input)
            switch probe.verdict {
            case .undecided:
                state = .beforeFrame(probe, isFirst: isFirst)
            case .more:
                state = .header([])
                _ = try probe.bytes.withUnsafeBufferPointer { (bytes) throws(ContentDecodingError) in
                    try readHeader([], UnsafeRawBufferPointer(bytes))
                }
            case .other:
                if isFirst { throw .corrupt(.zstd, detail: "it does not begin with a frame") }
                state = .ended
            }
            return DecoderStep(consumed: taken, produced: 0)
        case .header(let bytes):
            return DecoderStep(consumed: try readHeader(bytes, input), produced: 0)
        case .decoding(let left):
            return try decompress(input, into: output, left: left)
        }
    }

    /// - Returns: The number of bytes of `input` that belong to the header.
    private func readHeader(_ before: [UInt8], _ input: UnsafeRawBufferPointer)
        throws(ContentDecodingError) -> Int
    {
        var bytes = before
        for index in input.indices {
            let byte = UnsafeRawBufferPointer(rebasing: input[index...index])
            // A header makes no output. A skippable frame may consist of its header alone.
            if try step(byte, into: UnsafeMutableRawBufferPointer(start: nil, count: 0)).hasEnded {
                state = .beforeFrame(Self.frameProbe, isFirst: false)
                return index + 1
            }
            bytes.append(input[index])
            // This is an error while bytes of the header are missing, and 0 for a skippable frame.
            let size = library.contentSize(bytes, bytes.count)
            if size != Self.sizeError {
                state = .decoding(left: size == Self.unknownSize ? nil : UInt64(size))
                return index + 1
            }
        }
        state = .header(bytes)
        return input.count
    }

    private func decompress(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, left: UInt64?
    ) throws(ContentDecodingError) -> DecoderStep {
        let (step, hasEnded) = try step(input, into: output)
        var rest = left
        if let left {
            let produced = UInt64(step.produced)
            guard produced <= left, !hasEnded || produced == left else {
                throw .corrupt(.zstd, detail: "a frame is not as long as its header says")
            }
            rest = left - produced
        }
        state = hasEnded ? .beforeFrame(Self.frameProbe, isFirst: false) : .decoding(left: rest)
        return step
    }

    /// Calls libzstd once. `hasEnded` tells whether a frame has ended in the call.
    private func step(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> (DecoderStep, hasEnded: Bool)
    {
        // These pointers are valid for this call only.
        var source = rondo_zstd_input(source: input.baseAddress, size: input.count, position: 0)
        var target = rondo_zstd_output(target: output.baseAddress, size: output.count, position: 0)
        let result = library.decode(context, &target, &source)
        if library.isError(result) != 0 {
            throw .corrupt(.zstd, detail: String(cString: library.errorName(result)))
        }
        return (DecoderStep(consumed: source.position, produced: target.position), hasEnded: result == 0)
    }

    /// `ZSTD_CONTENTSIZE_UNKNOWN` and `ZSTD_CONTENTSIZE_ERROR`, macros that Swift does not import.
    private static let unknownSize = CUnsignedLongLong.max
    private static let sizeError = CUnsignedLongLong.max - 1

    /// The magic numbers, little-endian, of a frame and of a skippable frame (RFC 8878 §3.1.1 and §3.1.2).
    private static var frameProbe: ContinuationProbe {
        ContinuationProbe(length: 4) { bytes in
            bytes == [0x28, 0xB5, 0x2F, 0xFD]
                || (bytes[0] & 0xF0 == 0x50 && bytes[1...] == [0x2A, 0x4D, 0x18])
        }
    }

    func finish() throws(ContentDecodingError) {
        switch state {
        case .beforeFrame(let probe, isFirst: true) where !probe.bytes.isEmpty: throw .truncated(.zstd)
        case .header, .decoding: throw .truncated(.zstd)
        case .beforeFrame, .ended: break
        }
    }
}
