#if Zstd
    internal import CZstd

    /// Zstandard (RFC 8878), a series of frames.
    final class ZstdDecoder: CodingDecoder {
        /// The largest window, as a power of two: 8 MiB, the most that this content coding may use (RFC 9659).
        private static let maximumWindowLog: Int32 = 23

        private enum State {
            /// Whether a frame begins is asked here, before the first one too: libzstd, as Debian builds it, also
            /// decodes what was written before there was a standard, and minds no limit of the window there.
            case beforeFrame(ContinuationProbe, isFirst: Bool)
            case decoding
            case ended
        }

        var coding: ContentCoding { .zstd }
        /// Owned: freed in `deinit`.
        private let context: OpaquePointer
        private var state = State.beforeFrame(ZstdDecoder.frameProbe, isFirst: true)

        init() throws(ContentDecodingError) {
            guard let context = ZSTD_createDCtx() else { throw .outOfMemory(.zstd) }
            self.context = context
            ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.maximumWindowLog)
        }

        deinit { ZSTD_freeDCtx(context) }

        func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
            throws(ContentDecodingError) -> DecoderStep
        {
            switch state {
            case .ended:
                return DecoderStep(consumed: input.count, produced: 0)
            case .decoding:
                return try decompress(input, into: output)
            case .beforeFrame(var probe, let isFirst):
                let taken = probe.take(input)
                switch probe.verdict {
                case .undecided:
                    state = .beforeFrame(probe, isFirst: isFirst)
                    return DecoderStep(consumed: taken, produced: 0)
                case .other:
                    if isFirst { throw .corrupt(.zstd, detail: "it does not begin with a frame") }
                    state = .ended
                    return DecoderStep(consumed: input.count, produced: 0)
                case .more:
                    state = .decoding
                    // Nearly always the magic number has come in one piece.
                    if taken == probe.bytes.count { return try decompress(input, into: output) }
                    // A magic number makes no output and ends no frame.
                    _ = try probe.bytes.withUnsafeBufferPointer { (bytes) throws(ContentDecodingError) in
                        try decompress(UnsafeRawBufferPointer(bytes), into: output)
                    }
                    var step = try decompress(
                        UnsafeRawBufferPointer(rebasing: input[taken...]), into: output)
                    step.consumed += taken
                    return step
                }
            }
        }

        private func decompress(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
            throws(ContentDecodingError) -> DecoderStep
        {
            // For this call only.
            var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
            var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let result = ZSTD_decompressStream(context, &target, &source)
            if ZSTD_isError(result) != 0 {
                throw .corrupt(.zstd, detail: String(cString: ZSTD_getErrorName(result)))
            }
            if result == 0 { state = .beforeFrame(Self.frameProbe, isFirst: false) }
            return DecoderStep(consumed: source.pos, produced: target.pos)
        }

        /// RFC 8878 §3.1.1 and §3.1.2: a frame, or one to be skipped. Little-endian.
        private static var frameProbe: ContinuationProbe {
            ContinuationProbe(length: 4) { bytes in
                bytes == [0x28, 0xB5, 0x2F, 0xFD]
                    || (bytes[0] & 0xF0 == 0x50 && bytes[1...] == [0x2A, 0x4D, 0x18])
            }
        }

        func finish() throws(ContentDecodingError) {
            switch state {
            case .beforeFrame(let probe, isFirst: true) where !probe.bytes.isEmpty: throw .truncated(.zstd)
            case .decoding: throw .truncated(.zstd)
            case .beforeFrame, .ended: break
            }
        }
    }
#endif
