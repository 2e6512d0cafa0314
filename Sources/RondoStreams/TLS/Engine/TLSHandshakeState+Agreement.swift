internal import CRondoOpenSSL
internal import RondoCore

// The results of the handshake and the peer's certificates.
extension TLSHandshakeState {
    /// "TLSv1.3", once the handshake is done.
    var version: String { String(cString: SSL_get_version(ssl)) }

    /// Whether a session of an earlier connection was resumed.
    var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// "TLS_AES_256_GCM_SHA384", once the handshake is done.
    var cipher: String? {
        SSL_get_current_cipher(ssl).map { String(cString: SSL_CIPHER_get_name($0)) }
    }

    /// The protocol of `TLSSettings.alpn` that was agreed on, nil if none was.
    var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The name that a client has asked this server for, nil if none.
    var requestedName: String? {
        guard settings.role == .server else { return nil }
        return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    /// The certificates as the peer sent them, its own first, once the handshake has come that far.
    var peerCertificates: [TLSCertificate] {
        let chain = TLSCertificate.chain(SSL_get_peer_cert_chain(ssl))
        // On a server, OpenSSL keeps the client's own certificate apart from the rest of the chain.
        guard settings.role == .server, let own = SSL_get1_peer_certificate(ssl) else { return chain }
        defer { X509_free(own) }
        return [TLSCertificate(own)] + chain
    }

    /// The subject of the peer's own certificate; empty if there is none.
    var peerSubject: String {
        guard let own = SSL_get1_peer_certificate(ssl) else { return "" }
        defer { X509_free(own) }
        return TLSCertificate.text(of: X509_get_subject_name(own))
    }

    /// The results of the handshake; valid once it is done.
    var information: TLSInformation {
        TLSInformation(
            version: version, cipherSuite: cipher ?? "", applicationProtocol: applicationProtocol,
            requestedName: requestedName,
            peerCertificates: peerCertificates, problems: problems, isResumed: isResumed)
    }

    /// True if the peer's certificate was checked in full and had no problem, in this handshake or in that of
    /// the resumed session: neither settings nor a program's answer have overlooked anything.
    var isPeerVerified: Bool {
        settings.verification == .full && settings.tolerance.isEmpty && problems.isEmpty
    }
}
