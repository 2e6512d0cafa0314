package import CRondoLibraries

/// The decoder of Zstandard (RFC 8878), libzstd.
///
/// `@unchecked Sendable`: pointers to functions of a library that is never unloaded. Each works on the
/// context that it is given and on nothing else; a context belongs to one owner.
package struct Zstandard: @unchecked Sendable {
    /// Nil if the machine lacks the library, or it lacks a function.
    package static let library = Zstandard()

    package let create: rondo_zstd_create
    package let free: rondo_zstd_free
    package let set: rondo_zstd_set
    package let decode: rondo_zstd_decode
    package let contentSize: rondo_zstd_content_size
    package let isError: rondo_zstd_is_error
    package let errorName: rondo_zstd_error_name

    private init?() {
        guard let library = SharedLibrary("libzstd.so.1"),
            let create = library.function("ZSTD_createDCtx", rondo_zstd_create.self),
            let free = library.function("ZSTD_freeDCtx", rondo_zstd_free.self),
            let set = library.function("ZSTD_DCtx_setParameter", rondo_zstd_set.self),
            let decode = library.function("ZSTD_decompressStream", rondo_zstd_decode.self),
            let contentSize = library.function("ZSTD_getFrameContentSize", rondo_zstd_content_size.self),
            let isError = library.function("ZSTD_isError", rondo_zstd_is_error.self),
            let errorName = library.function("ZSTD_getErrorName", rondo_zstd_error_name.self)
        else { return nil }
        (self.create, self.free, self.set, self.decode) = (create, free, set, decode)
        (self.contentSize, self.isError, self.errorName) = (contentSize, isError, errorName)
    }
}
