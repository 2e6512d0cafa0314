// OpenSSL's way to the socket: a BIO of our own that reads and writes a descriptor's number.
//
// OpenSSL's own socket BIO writes with write(2), and a peer that has gone would then end the program by
// SIGPIPE. A pair of memory BIOs, the other usual way, copies every byte of ciphertext once more; with the
// descriptor itself in OpenSSL's hands that copy is saved.
//
// Kernel TLS (SSL_OP_ENABLE_KTLS) is not used. OpenSSL 3 switches it on by controls of its own socket BIO that
// carry structures of its internals, and writes there with write(2) again. The kernels that this was written on
// have no TLS at all, so that neither its gain nor its failures could be measured; with recv and send as below
// receiving 1 GiB costs what it costs over OpenSSL's socket BIO (0.79 s of processor time each, medians of
// seven), nearly all of it for AES and the kernel's copy.
//
// There is no pointer to keep alive: a BIO's data field holds a *value*, the descriptor, what went wrong last
// and whether the peer's end was met. The callbacks below turn a system call's outcome into OpenSSL's return
// value and flags; they hold no lock, call no user code and trap on nothing.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoMutex

/// The BIO by which OpenSSL reads and writes a socket's descriptor.
enum SocketBIO {
    /// What a BIO's data field holds, as one 64-bit value.
    private struct Note {
        var descriptor: Int32
        /// The errno of the call that failed last, or 0.
        var code: UInt16 = 0
        /// The peer has closed its side of the TCP connection.
        var metEnd = false

        init(descriptor: Int32) { self.descriptor = descriptor }

        init(_ pointer: UnsafeMutableRawPointer?) {
            let bits = UInt(bitPattern: pointer)
            descriptor = Int32(truncatingIfNeeded: bits)
            code = UInt16(truncatingIfNeeded: bits >> 32)
            metEnd = bits >> 48 & 1 != 0
        }

        var pointer: UnsafeMutableRawPointer? {
            let low = UInt(UInt32(bitPattern: descriptor)) | UInt(code) << 32
            return UnsafeMutableRawPointer(bitPattern: low | (metEnd ? 1 << 48 : 0))
        }
    }

    /// A BIO for `descriptor`, which it does not own; nil if memory is short. The caller owns the BIO, until
    /// `SSL_set_bio` takes it over.
    static func make(descriptor: Int32) -> OpaquePointer? {
        guard let method = method(), let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Note(descriptor: descriptor).pointer)
        BIO_set_init(bio, 1)
        return bio
    }

    /// The errno of the failure that OpenSSL has just reported, which is forgotten with this.
    static func takeCode(of bio: OpaquePointer?) -> Int32 {
        var note = Note(BIO_get_data(bio))
        defer {
            note.code = 0
            BIO_set_data(bio, note.pointer)
        }
        return Int32(note.code)
    }

    static func hasMetEnd(_ bio: OpaquePointer?) -> Bool { Note(BIO_get_data(bio)).metEnd }

    /// From now on the BIO reads and writes nothing: the descriptor's number may belong to another socket
    /// soon.
    static func detach(_ bio: OpaquePointer?) { BIO_set_data(bio, Note(descriptor: -1).pointer) }

    /// `@unchecked Sendable`: it is made once and never freed, and OpenSSL only reads it.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let madeMethod = Mutex<Method?>(nil)

    /// Nil if memory is short, until there is some again.
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
                    note.metEnd = true
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

    /// Flushing always succeeds, because nothing is kept here. Everything else is not known, the question for
    /// the end among it: answering yes makes OpenSSL end the session for good, and nothing more could be sent
    /// to a peer that has closed only its side.
    private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int =
        { _, command, _, _ in
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
}
