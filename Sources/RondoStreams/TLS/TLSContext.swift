// The part of TLS that connections with the same settings share: versions, trust store, options.

internal import COpenSSL
internal import RondoCore
internal import Synchronization

/// Owns one `SSL_CTX`, set up from settings once and never changed afterwards.
///
/// Making one reads certificate authorities and costs about a millisecond; `TLSContext.shared` keeps them.
package final class TLSContext: Sendable {
    package let settings: TLSSettings

    /// Freed in `deinit`; every `SSL` made from it holds a count of its own, so either may go first.
    ///
    /// Unsafe in name only: nothing here changes it after `init`, and what OpenSSL itself changes in it
    /// (counts, the cache of the trust store) it does under locks of its own.
    nonisolated(unsafe) let pointer: OpaquePointer

    /// Contexts kept for reuse. Programs have one or two settings; whoever makes them up anew for each
    /// connection pays for it, but does not grow.
    package static let sharedLimit = 16

    private static let kept = Mutex<[TLSContext]>([])

    /// The context for these settings: the one that was made for them earlier, if it is still kept.
    package static func shared(for settings: TLSSettings) throws(TLSError) -> TLSContext {
        let found = kept.withLock { kept -> TLSContext? in
            guard let index = kept.firstIndex(where: { $0.settings == settings }) else { return nil }
            if index > 0 { kept.insert(kept.remove(at: index), at: 0) }
            return kept[0]
        }
        if let found { return found }
        // Two threads may both make one: the later is kept as well and pushed out in time.
        let made = try TLSContext(settings)
        let dropped = kept.withLock { kept in
            kept.insert(made, at: 0)
            return kept.count > sharedLimit ? kept.removeLast() : nil
        }
        // Freed here, with the lock let go.
        _ = dropped
        return made
    }

    package init(_ settings: TLSSettings) throws(TLSError) {
        _ = Self.library
        OpenSSLErrors.clear()
        guard let pointer = SSL_CTX_new(TLS_client_method()) else {
            throw TLSError(.settings("OpenSSL could not be set up: \(OpenSSLErrors.drainedWords())"))
        }
        self.pointer = pointer
        self.settings = settings
        setModes()
        try setVersions()
        try setProtocols()
        for authorities in settings.certificateAuthorities { try trust(authorities) }
        OpenSSLErrors.clear()
    }

    deinit { SSL_CTX_free(pointer) }

    /// OpenSSL is not taken down at exit: other threads' run loops may still be at work with it then.
    private static let library: Bool = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
}

// MARK: - Setting up

extension TLSContext {
    private func setModes() {
        // A write takes as much as the socket does, from wherever the caller has it then. The buffers of an
        // idle connection (34 KiB) go back. No read-ahead: it would copy every byte once more.
        let modes =
            SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
        _ = rondo_SSL_CTX_set_mode(pointer, Int(modes))
        // A server that wants to begin anew in the middle of a connection is refused, as browsers do.
        SSL_CTX_set_options(pointer, rondo_SSL_OP_NO_RENEGOTIATION)
        let checks = settings.verification == .none ? SSL_VERIFY_NONE : SSL_VERIFY_PEER
        SSL_CTX_set_verify(pointer, checks, nil)
    }

    private func setVersions() throws(TLSError) {
        guard settings.minimumVersion <= settings.maximumVersion else {
            throw TLSError(.settings("TLSSettings.minimumVersion is above maximumVersion"))
        }
        guard rondo_SSL_CTX_set_min_proto_version(pointer, settings.minimumVersion.number) == 1,
            rondo_SSL_CTX_set_max_proto_version(pointer, settings.maximumVersion.number) == 1
        else { throw unusable("minimumVersion or maximumVersion") }
        // OpenSSL 3 has the signatures of TLS 1.0 and 1.1 at security level 0 only.
        if settings.minimumVersion < .tls12, SSL_CTX_set_cipher_list(pointer, "DEFAULT:@SECLEVEL=0") != 1 {
            throw unusable("minimumVersion")
        }
    }

    private func setProtocols() throws(TLSError) {
        guard !settings.alpn.isEmpty else { return }
        var wire: [UInt8] = []
        for name in settings.alpn {
            guard (1...255).contains(name.utf8.count) else {
                throw TLSError(
                    .settings("TLSSettings.alpn: a name has 1 to 255 bytes, not \(name.utf8.count)"))
            }
            wire.append(UInt8(name.utf8.count))
            wire.append(contentsOf: name.utf8)
        }
        // Unlike its neighbours this function answers 0 for success.
        guard SSL_CTX_set_alpn_protos(pointer, wire, UInt32(wire.count)) == 0 else { throw unusable("alpn") }
    }

    private func trust(_ authorities: TLSSettings.CertificateAuthorities) throws(TLSError) {
        switch authorities {
        case .system:
            guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
                throw unusable("certificateAuthorities (.system)")
            }
        case .file(let path):
            guard SSL_CTX_load_verify_file(pointer, path) == 1 else {
                throw unusable("certificateAuthorities (.file “\(path)”)")
            }
        case .directory(let path):
            // OpenSSL looks into it only when it needs a certificate, and then keeps silent if it is not
            // there.
            guard access(path, R_OK | X_OK) == 0 else {
                let sentence = SocketError.sentence(of: errno)
                throw TLSError(.settings("certificate authorities in “\(path)” cannot be read: \(sentence)"))
            }
            guard SSL_CTX_load_verify_dir(pointer, path) == 1 else {
                throw unusable("certificateAuthorities (.directory “\(path)”)")
            }
        case .pem(let text):
            try trust(pem: text)
        }
    }

    private func trust(pem text: String) throws(TLSError) {
        let bytes = Array(text.utf8)
        // The BIO reads from `bytes` and is freed before they are.
        let added: Int? = bytes.withUnsafeBytes { bytes in
            guard let input = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return nil
            }
            defer { BIO_free(input) }
            var added = 0
            while let certificate = PEM_read_bio_X509(input, nil, nil, nil) {
                // The store counts for itself; this count is given back.
                defer { X509_free(certificate) }
                guard X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), certificate) == 1 else {
                    return nil
                }
                added += 1
            }
            // The end of the text, too, is reported as an error: "no start line". Any other is a broken text.
            let last = OpenSSLErrors.drain().last
            guard last?.library == ERR_LIB_PEM, last?.reason == PEM_R_NO_START_LINE else { return nil }
            return added
        }
        guard let added, added > 0 else {
            throw TLSError(
                .settings(
                    "TLSSettings.certificateAuthorities (.pem): no certificate could be read from the text"))
        }
    }

    private func unusable(_ setting: String) -> TLSError {
        TLSError(.settings("TLSSettings.\(setting) cannot be used: \(OpenSSLErrors.drainedWords())"))
    }
}

extension TLSSettings.Version {
    /// OpenSSL's number for it.
    fileprivate var number: Int32 {
        switch self {
        case .tls10: TLS1_VERSION
        case .tls11: TLS1_1_VERSION
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}
