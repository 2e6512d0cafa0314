package import CRondoLibraries

/// The decoder of Brotli (RFC 7932), libbrotlidec.
///
/// `@unchecked Sendable`: pointers to functions of a library that is never unloaded. Each works on the state
/// that it is given and on nothing else; a state belongs to one owner.
package struct Brotli: @unchecked Sendable {
    /// Nil if the machine lacks the library, or it lacks a function.
    package static let library = Brotli()

    package let create: rondo_brotli_create
    package let decode: rondo_brotli_decode
    package let destroy: rondo_brotli_destroy
    package let errorCode: rondo_brotli_error_code
    package let errorText: rondo_brotli_error_text

    private init?() {
        guard let library = SharedLibrary("libbrotlidec.so.1"),
            let create = library.function("BrotliDecoderCreateInstance", rondo_brotli_create.self),
            let decode = library.function("BrotliDecoderDecompressStream", rondo_brotli_decode.self),
            let destroy = library.function("BrotliDecoderDestroyInstance", rondo_brotli_destroy.self),
            let errorCode = library.function("BrotliDecoderGetErrorCode", rondo_brotli_error_code.self),
            let errorText = library.function("BrotliDecoderErrorString", rondo_brotli_error_text.self)
        else { return nil }
        (self.create, self.decode, self.destroy) = (create, decode, destroy)
        (self.errorCode, self.errorText) = (errorCode, errorText)
    }
}
