// Reading keys and certificates in PEM form (RFC 7468), which OpenSSL parses, and the files that hold them.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoCore

/// Reads certificates and keys from texts and files.
enum PEM {
    /// The most bytes that a file of certificates, keys or revocation lists may have. This machine's own list
    /// of authorities has about 220,000; revocation lists of large authorities have some millions.
    static let fileLimit = 64 * 1024 * 1024

    /// Calls `body` with each certificate, an `X509 *` that is freed after the call, until `body` returns
    /// false.
    ///
    /// - Returns: Whether the text could be parsed up to that point. A text without any certificate counts as
    ///   parsed.
    static func forEachCertificate(in text: [UInt8], _ body: (OpaquePointer) -> Bool) -> Bool {
        forEach(in: text, { PEM_read_bio_X509($0, nil, nil, $1) }, X509_free, body)
    }

    /// Does the same for revocation lists, each an `X509_CRL *`.
    static func forEachRevocationList(in text: [UInt8], _ body: (OpaquePointer) -> Bool) -> Bool {
        forEach(in: text, { PEM_read_bio_X509_CRL($0, nil, nil, $1) }, X509_CRL_free, body)
    }

    /// Reads one item. `password` is a C string and never nil: for nil, OpenSSL would ask for a password at
    /// the terminal.
    private typealias Reader = (_ input: OpaquePointer, _ password: UnsafeMutableRawPointer) -> OpaquePointer?

    private static func forEach(
        in text: [UInt8], _ read: Reader, _ free: (OpaquePointer?) -> Void, _ body: (OpaquePointer) -> Bool
    ) -> Bool {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        var password: CChar = 0
        return withBIO(text) { input in
            while let item = read(input, &password) {
                defer { free(item) }
                guard body(item) else { return true }
            }
            // OpenSSL reports the end of the text as an error too: "no start line". Any other error means a
            // broken text.
            let last = OpenSSLErrors.drain().last
            return last?.library == ERR_LIB_PEM && last?.reason == PEM_R_NO_START_LINE
        } ?? false
    }

    /// Calls `body` with a BIO that reads `bytes`; returns nil if memory is short.
    static func withBIO<R>(_ bytes: [UInt8], _ body: (OpaquePointer) -> R) -> R? {
        bytes.withUnsafeBytes { bytes in
            // An empty buffer has no address, and BIO_new_mem_buf refuses a null one.
            var nothing: UInt8 = 0
            return withUnsafePointer(to: &nothing) { nothing -> R? in
                let start = bytes.baseAddress ?? UnsafeRawPointer(nothing)
                guard let input = BIO_new_mem_buf(start, Int32(clamping: bytes.count)) else { return nil }
                defer { BIO_free(input) }
                return body(input)
            }
        }
    }

    /// Reads a private key and returns an `EVP_PKEY *` that the caller must free; nil on failure, with the
    /// reason in OpenSSL's error queue.
    static func privateKey(in text: [UInt8], password: String?) -> OpaquePointer? {
        OpenSSLErrors.clear()
        // Never nil, see `Reader`; an empty password stands for none.
        var password = Array((password ?? "").utf8CString)
        return password.withUnsafeMutableBytes { password in
            withBIO(text) { PEM_read_bio_PrivateKey($0, nil, nil, password.baseAddress) } ?? nil
        }
    }

    /// Reads a whole file, if it is no longer than `fileLimit`, or a pipe until its writers have closed it.
    ///
    /// - Parameter patience: The seconds for which a pipe's writer is waited for, in all.
    static func contents(of path: String, patience: Double = 0) -> Result<[UInt8], SystemFailure> {
        // O_NONBLOCK, because opening a pipe without a writer would block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return .failure(SystemFailure(code: errno)) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        let end = LoopClock.systemNow.advanced(bySeconds: patience)
        // A FIFO without a writer reads as one at its end, also before its first writer has opened it.
        var mayAwaitWriter = isFIFO(descriptor)
        while bytes.count <= fileLimit {
            let count = Glibc.read(descriptor, &piece, piece.count)
            let code = errno
            if count > 0 {
                bytes += piece.prefix(count)
            } else if count == 0, !mayAwaitWriter || !bytes.isEmpty {
                return .success(bytes)
            } else if count == 0, SocketCalls.poll(descriptor, for: POLLIN) & POLLHUP != 0 {
                // A writer has come and gone: the next read finds its bytes, or the end.
                mayAwaitWriter = false
            } else if count == 0 || code == EAGAIN {
                guard SocketCalls.wait(descriptor, for: POLLIN, until: end) else {
                    return .failure(SystemFailure(code: ETIMEDOUT))
                }
            } else if code != EINTR {
                return .failure(SystemFailure(code: code))
            }
        }
        return .failure(SystemFailure(code: EFBIG))
    }

    private static func isFIFO(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// The errno for which a file could not be read.
    struct SystemFailure: Error {
        let code: Int32
        var words: String { SocketError.sentence(of: code) }
    }
}

/// Hashes of bytes, by OpenSSL.
enum Digest {
    /// Returns 32 bytes, or none where OpenSSL has no memory.
    static func sha256(_ data: Data) -> Data {
        var digest = Data(count: 32)
        let isDone = digest.withUnsafeMutableBytes { digest in
            data.withUnsafeBytes { bytes in
                EVP_Digest(
                    bytes.baseAddress, bytes.count, digest.bindMemory(to: UInt8.self).baseAddress, nil,
                    EVP_sha256(), nil)
            }
        }
        return isDone == 1 ? digest : Data()
    }
}
