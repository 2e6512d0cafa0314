internal import RondoLibraries

/// Decodes Brotli (RFC 7932). The library rejects windows above that RFC's 16 MiB ("large window") by
/// default.
final class BrotliDecoder: CodingDecoder {
    /// `BROTLI_DECODER_RESULT_SUCCESS` and its kin.
    private static let success: Int32 = 1, needsMoreInput: Int32 = 2, needsMoreOutput: Int32 = 3

    var coding: ContentCoding { .brotli }
    /// Owned: freed in `deinit`.
    private let state: OpaquePointer
    private let library: Brotli
    private var hasEnded = false
    private var sawInput = false

    init() throws(ContentDecodingError) {
        guard let library = Brotli.library else { throw .missingLibrary(.brotli) }
        guard let state = library.create(nil, nil, nil) else { throw .outOfMemory(.brotli) }
        self.library = library
        self.state = state
    }

    deinit { library.destroy(state) }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> DecoderStep
    {
        if hasEnded { return DecoderStep(consumed: input.count, produced: 0) }
        if !input.isEmpty { sawInput = true }
        // These pointers are valid for this call only.
        var nextIn = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var availableIn = input.count
        var nextOut = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var availableOut = output.count
        let result = library.decode(state, &availableIn, &nextIn, &availableOut, &nextOut, nil)
        var step = DecoderStep(
            consumed: input.count - availableIn, produced: output.count - availableOut)
        switch result {
        case Self.success:
            hasEnded = true
            step.consumed = input.count
            return step
        case Self.needsMoreInput, Self.needsMoreOutput:
            return step
        default:
            let reason = library.errorText(library.errorCode(state))
            throw .corrupt(.brotli, detail: reason.map { String(cString: $0) } ?? "")
        }
    }

    func finish() throws(ContentDecodingError) {
        if sawInput && !hasEnded { throw .truncated(.brotli) }
    }
}
