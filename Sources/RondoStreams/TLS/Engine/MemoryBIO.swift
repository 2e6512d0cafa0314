internal import CRondoOpenSSL

/// The BIO by which OpenSSL reads bytes that were read from the socket before TLS began.
enum MemoryBIO {
    /// Makes OpenSSL read `bytes` in place of the socket, until `remove(from:)`.
    ///
    /// - Returns: False if memory is short.
    static func install(_ bytes: [UInt8], in ssl: OpaquePointer) -> Bool {
        guard let memory = BIO_new(BIO_s_mem()) else { return false }
        // An empty memory BIO then reports "try later", not "end of file".
        rondo_BIO_set_mem_eof_return(memory, -1)
        let written = bytes.withUnsafeBytes { BIO_write(memory, $0.baseAddress, Int32(clamping: $0.count)) }
        // Hands the memory BIO over, and releases one of the socket BIO's two references.
        SSL_set0_rbio(ssl, memory)
        return written == bytes.count
    }

    /// Makes OpenSSL read the socket from here on: the bytes are used up.
    static func remove(from ssl: OpaquePointer) {
        let bio = SSL_get_wbio(ssl)
        // The BIO needs one reference for each direction.
        BIO_up_ref(bio)
        SSL_set0_rbio(ssl, bio)
    }
}
