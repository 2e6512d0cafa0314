// A BIO of our own, through which OpenSSL reads and writes a socket's descriptor.
//
// OpenSSL's own socket BIO writes with write(2), and when the peer has closed the connection, SIGPIPE would
// end the program. A pair of memory BIOs, the other usual solution, copies every byte of ciphertext once
// more; letting OpenSSL use the descriptor directly saves that copy.
//
// Kernel TLS (SSL_OP_ENABLE_KTLS) is not used. OpenSSL 3 switches it on by controls of its own socket BIO
// that carry internal structures, and then writes with write(2) again. The kernels that this was developed on
// have no TLS support, so neither its gain nor its failures could be measured. With recv and send as below,
// receiving 1 GiB costs the same as over OpenSSL's socket BIO (0.79 s of processor time each, medians of
// seven), nearly all of it for AES and the kernel's copy.
//
// No pointer has to be kept alive: a BIO's data field holds a *value* made of the descriptor, the last errno
// and whether the peer's end was received. The callbacks below turn a system call's result into OpenSSL's
// return value and flags; they hold no lock, call no user code and never trap.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoMutex

/// The BIO by which OpenSSL reads and writes a socket's descriptor.
enum SocketBIO {
    /// The content of a BIO's data field, packed into 64 bits.
    private struct Note {
        var descriptor: Int32
        /// The errno of the last call that failed, or 0.
        var code: UInt16 = 0
        /// The peer has closed its side of the TCP connection.
        var reachedEnd = false

        init(descriptor: Int32) { self.descriptor = descriptor }

        init(_ pointer: UnsafeMutableRawPointer?) {
            let bits = UInt(bitPattern: pointer)
            descriptor = Int32(truncatingIfNeeded: bits)
            code = UInt16(truncatingIfNeeded: bits >> 32)
            reachedEnd = bits >> 48 & 1 != 0
        }

        var pointer: UnsafeMutableRawPointer? {
            let low = UInt(UInt32(bitPattern: descriptor)) | UInt(code) << 32
            return UnsafeMutableRawPointer(bitPattern: low | (reachedEnd ? 1 << 48 : 0))
        }
    }

    /// Makes a BIO for `descriptor`, which the BIO does not own; nil if memory is short. The caller owns the
    /// BIO until `SSL_set_bio` takes it over.
    static func make(descriptor: Int32) -> OpaquePointer? {
        guard let method = method(), let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Note(descriptor: descriptor).pointer)
        BIO_set_init(bio, 1)
        return bio
    }

    /// Returns the errno of the failure that OpenSSL has just reported, and clears it.
    static func takeCode(of bio: OpaquePointer?) -> Int32 {
        var note = Note(BIO_get_data(bio))
        defer {
            note.code = 0
            BIO_set_data(bio, note.pointer)
        }
        return Int32(note.code)
    }

    static func hasReachedEnd(_ bio: OpaquePointer?) -> Bool { Note(BIO_get_data(bio)).reachedEnd }

    /// Stops the BIO from reading and writing: the descriptor's number may soon belong to another socket.
    static func detach(_ bio: OpaquePointer?) { BIO_set_data(bio, Note(descriptor: -1).pointer) }

    /// The method table of the BIO. `@unchecked Sendable`: it is made once and never freed, and OpenSSL only
    /// reads it.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let madeMethod = Mutex<Method?>(nil)

    /// Makes the method table on first use. Nil if memory is short; the next call tries again.
    private static func method() -> OpaquePointer? {
        madeMethod.withLock { made in
            if let made { return made.pointer }
            let index = BIO_get_new_index()
            guard index > 0, let method = BIO_meth_new(index | BIO_TYPE_SOURCE_SINK, "Rondo socket") else {
                return nil
            }
            BIO_meth_set_read_ex(method, receive)
            BIO_meth_set_write_ex(method, send)
            BIO_meth_set_ctrl(method, control)
            made = Method(pointer: method)
            return method
        }
    }

    private static let receive:
        @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?) ->
            Int32 = {
                bio, start, count, done in
                BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
                var note = Note(BIO_get_data(bio))
                switch SocketCalls.receive(note.descriptor, start, count) {
                case .bytes(0):
                    note.reachedEnd = true
                    BIO_set_data(bio, note.pointer)
                    return 0
                case .bytes(let received):
                    done?.pointee = received
                    return 1
                case .wouldBlock:
                    BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
                    return 0
                case .failed(let code):
                    note.code = UInt16(truncatingIfNeeded: code)
                    BIO_set_data(bio, note.pointer)
                    return 0
                }
            }

    private static let send:
        @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int, UnsafeMutablePointer<Int>?) -> Int32 = {
            bio, start, count, done in
            BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
            var note = Note(BIO_get_data(bio))
            switch SocketCalls.send(note.descriptor, start, count) {
            case .bytes(let sent):
                done?.pointee = sent
                return 1
            case .wouldBlock:
                BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
                return 0
            case .failed(let code):
                note.code = UInt16(truncatingIfNeeded: code)
                BIO_set_data(bio, note.pointer)
                return 0
            }
        }

    /// Flushing always succeeds, because the BIO buffers nothing. All other commands are unknown,
    /// BIO_CTRL_EOF among them: answering yes to that one makes OpenSSL end the session for good, and nothing
    /// more could be sent to a peer that has closed only its side.
    private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int =
        { _, command, _, _ in
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
}
