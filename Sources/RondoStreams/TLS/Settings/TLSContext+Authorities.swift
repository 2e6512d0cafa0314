// The authorities that a context trusts, loaded from the machine's store, files and texts.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoCore

extension TLSContext {
    func setAuthorities() throws(TLSError) {
        // A server that asks for no client certificate verifies none.
        if settings.role == .server, settings.clientCertificates == .notRequested { return }
        let store = SSL_CTX_get_cert_store(pointer)
        // An intermediate authority that the settings name is trusted even without its root.
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        for authorities in settings.certificateAuthorities { try trust(authorities) }
    }

    private func trust(_ authorities: TLSSettings.CertificateAuthorities) throws(TLSError) {
        switch authorities.origin {
        case .system:
            guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
                throw unusable("certificateAuthorities (.system)", .authorities)
            }
        case .file(let path):
            guard SSL_CTX_load_verify_file(pointer, path) == 1 else {
                throw unusable("certificateAuthorities (.file “\(path)”)", .authorities)
            }
            nameToClients(file: path)
        case .directory(let path):
            // OpenSSL looks into the directory only when it needs a certificate, and reports no error if it
            // does not exist.
            guard access(path, R_OK | X_OK) == 0 else {
                let sentence = SocketError.sentence(of: errno)
                throw TLSError(
                    .settings(
                        "TLSSettings.certificateAuthorities (.directory “\(path)”) cannot be read: \(sentence)",
                        .authorities))
            }
            guard SSL_CTX_load_verify_dir(pointer, path) == 1 else {
                throw unusable("certificateAuthorities (.directory “\(path)”)", .authorities)
            }
        case .pem(let text):
            try trust(pem: text)
        case .certificates(let certificates):
            for certificate in certificates {
                guard let pointer = TLSCertificate.decode(certificate.derRepresentation) else {
                    throw unusable("certificateAuthorities (.certificates)", .authorities)
                }
                defer { X509_free(pointer) }
                guard trust(pointer) else {
                    throw unusable("certificateAuthorities (.certificates)", .authorities)
                }
            }
        }
    }

    private func trust(pem text: String) throws(TLSError) {
        var added = 0
        var isGood = true
        let isWhole = PEM.forEachCertificate(in: Array(text.utf8)) { certificate in
            isGood = trust(certificate)
            added += 1
            return isGood
        }
        guard isWhole, isGood, added > 0 else {
            throw TLSError(
                .settings(
                    "TLSSettings.certificateAuthorities (.pem): no certificate could be read from the text",
                    .authorities))
        }
    }

    /// The store takes a reference of its own.
    private func trust(_ certificate: OpaquePointer) -> Bool {
        guard X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), certificate) == 1 else { return false }
        return settings.role == .client || SSL_CTX_add_client_CA(pointer, certificate) == 1
    }

    /// Lets a server tell clients which authorities it accepts, so that they can choose a certificate. The
    /// authorities of the whole machine would be too many to be of use, and a directory is not searched.
    private func nameToClients(file path: String) {
        guard settings.role == .server, case .success(let text) = PEM.contents(of: path) else { return }
        _ = PEM.forEachCertificate(in: text) { SSL_CTX_add_client_CA(pointer, $0) == 1 }
    }
}
