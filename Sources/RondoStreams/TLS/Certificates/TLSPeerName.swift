internal import CRondoOpenSSL
internal import RondoCore

/// Sets up the name that a TLS client expects of its peer.
enum TLSPeerName {
    /// Sets the name for SNI and the name that the certificate must have.
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
            // RFC 6066, section 3: no SNI for addresses. An address's scope has a meaning on this machine
            // only.
            let literal = address.host.split(separator: "%").first.map(String.init) ?? address.host
            if checksName { try require(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), literal)) }
            return
        }
        // The trailing dot of a complete name is neither sent in SNI nor found in certificates.
        let name = peerName.last == "." ? String(peerName.dropLast()) : peerName
        if name.isEmpty || name.first == "." || name.utf8.contains(0) || !name.utf8.allSatisfy({ $0 < 0x80 })
        {
            // OpenSSL would skip the check for an empty name, accept every subdomain for a leading dot, and
            // stop reading at a NUL.
            if verification == .none { return }
            throw TLSError(
                .settings("“\(peerName)” is not a host name that a certificate could be checked for"),
                host: peerName)
        }
        try require(rondo_SSL_set_tlsext_host_name(ssl, name))
        guard checksName else { return }
        // Only the alternative names count, not the subject (RFC 9525), and "*" stands for one whole label.
        var flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        // The only wildcard that could match this name would stand right below the registry's suffix.
        if let dot = name.firstIndex(of: "."), RegistrySuffix.contains(name[name.index(after: dot)...]) {
            flags |= X509_CHECK_FLAG_NO_WILDCARDS
        }
        SSL_set_hostflags(ssl, UInt32(flags))
        try require(SSL_set1_host(ssl, name))
    }
}
