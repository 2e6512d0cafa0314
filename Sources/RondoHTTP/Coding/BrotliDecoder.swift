#if Brotli
    internal import CBrotli

    /// Brotli (RFC 7932). Windows above its 16 MiB ("large window") are refused by the library unless asked for.
    final class BrotliDecoder: CodingDecoder {
        var coding: ContentCoding { .brotli }
        /// Owned: freed in `deinit`.
        private let state: OpaquePointer
        private var hasEnded = false
        private var sawInput = false

        init() throws(ContentDecodingError) {
            guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { throw .outOfMemory(.brotli) }
            self.state = state
        }

        deinit { BrotliDecoderDestroyInstance(state) }

        func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
            throws(ContentDecodingError) -> DecoderStep
        {
            if hasEnded { return DecoderStep(consumed: input.count, produced: 0) }
            if !input.isEmpty { sawInput = true }
            // For this call only.
            var nextIn = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var availableIn = input.count
            var nextOut = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var availableOut = output.count
            let result = BrotliDecoderDecompressStream(
                state, &availableIn, &nextIn, &availableOut, &nextOut, nil)
            var step = DecoderStep(
                consumed: input.count - availableIn, produced: output.count - availableOut)
            switch result {
            case BROTLI_DECODER_RESULT_SUCCESS:
                hasEnded = true
                step.consumed = input.count
                return step
            case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT, BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
                return step
            default:
                let reason = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state))
                throw .corrupt(.brotli, detail: reason.map { String(cString: $0) } ?? "")
            }
        }

        func finish() throws(ContentDecodingError) {
            if sawInput && !hasEnded { throw .truncated(.brotli) }
        }
    }
#endif
