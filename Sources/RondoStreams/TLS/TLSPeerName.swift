internal import CRondoOpenSSL
internal import RondoCore

/// The name of a TLS client's peer, as OpenSSL is told of it.
enum TLSPeerName {
    /// Tells OpenSSL which name to ask for (SNI) and which one the certificate has to have.
    static func set(
        _ peerName: String, of ssl: OpaquePointer, verification: TLSSettings.Verification
    ) throws(TLSError) {
        func require(_ result: Int32) throws(TLSError) {
            guard result == 1 else {
                let words = OpenSSLErrors.drainedWords()
                throw TLSError(
                    .settings("the host name “\(peerName)” cannot be used: \(words)"), host: peerName)
            }
        }

        let checksName = verification != .withoutHostName
        if let address = SocketAddress(literal: peerName, port: 0) {
            // RFC 6066, section 3: no SNI for addresses. A scope says something to this machine only.
            let literal = address.host.split(separator: "%").first.map(String.init) ?? address.host
            if checksName { try require(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), literal)) }
            return
        }
        // The dot that ends a complete name belongs neither into SNI nor into certificates.
        let name = peerName.last == "." ? String(peerName.dropLast()) : peerName
        if name.isEmpty || name.first == "." || name.utf8.contains(0) || !name.utf8.allSatisfy({ $0 < 0x80 })
        {
            // An empty name would switch the check off, a leading dot would stand for every host below, a C
            // function would stop at a NUL.
            if verification == .none { return }
            throw TLSError(
                .settings("“\(peerName)” is not a host name that a certificate could be checked for"),
                host: peerName)
        }
        try require(rondo_SSL_set_tlsext_host_name(ssl, name))
        guard checksName else { return }
        // Names count in the one place where RFC 9525 has them, not in the subject, and "*" stands for a
        // label.
        var flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        // The only star that could stand for this name would be right below the suffix.
        if let dot = name.firstIndex(of: "."), RegistrySuffix.contains(name[name.index(after: dot)...]) {
            flags |= X509_CHECK_FLAG_NO_WILDCARDS
        }
        SSL_set_hostflags(ssl, UInt32(flags))
        try require(SSL_set1_host(ssl, name))
    }
}
