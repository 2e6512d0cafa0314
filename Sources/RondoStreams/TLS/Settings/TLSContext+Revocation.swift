// The revocation lists (CRLs) that the program has supplied.

internal import CRondoOpenSSL
internal import RondoCore

extension TLSContext {
    func setRevocationLists() throws(TLSError) {
        guard !settings.revocationLists.isEmpty || settings.requiresRevocationLists else { return }
        for list in settings.revocationLists {
            switch list.place {
            case .file(let path):
                switch PEM.contents(of: path) {
                case .success(let bytes): try add(bytes, name: "“\(path)”")
                case .failure(let failure):
                    throw TLSError(
                        .settings(
                            "TLSSettings.revocationLists (“\(path)”) cannot be read: \(failure.words)",
                            .revocationLists))
                }
            case .data(let data): try add(Array(data), name: ".data")
            }
        }
        // Check every certificate of a chain. The verifier ignores missing lists, unless the settings require
        // them.
        let flags = X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL
        X509_STORE_set_flags(SSL_CTX_get_cert_store(pointer), UInt(flags))
    }

    private func noteEnd(of list: OpaquePointer) {
        // A list need not say when its successor is due.
        guard let next = X509_CRL_get0_nextUpdate(list) else { return }
        revocationListsEnd = min(revocationListsEnd, TLSCertificate.seconds(of: next) ?? 0)
    }

    private func add(_ bytes: [UInt8], name: String) throws(TLSError) {
        let store = SSL_CTX_get_cert_store(pointer)
        var added = 0
        if let list = PEM.withBIO(bytes, { d2i_X509_CRL_bio($0, nil) }) ?? nil {
            defer { X509_CRL_free(list) }
            if X509_STORE_add_crl(store, list) == 1 { added += 1 }
            noteEnd(of: list)
        } else {
            let isWhole = PEM.forEachRevocationList(in: bytes) { list in
                guard X509_STORE_add_crl(store, list) == 1 else { return false }
                added += 1
                noteEnd(of: list)
                return true
            }
            if !isWhole { added = 0 }
        }
        guard added > 0 else {
            throw TLSError(
                .settings(
                    "TLSSettings.revocationLists (\(name)): no list could be read from the data",
                    .revocationLists))
        }
    }
}
