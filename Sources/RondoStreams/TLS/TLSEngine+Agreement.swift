internal import COpenSSL
internal import RondoCore

// What was agreed upon, and with whom.
extension TLSEngine {
    /// "TLSv1.3", once the handshake is done.
    package var version: String { String(cString: SSL_get_version(ssl)) }

    /// Whether a session of an earlier connection was taken up again.
    package var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// "TLS_AES_256_GCM_SHA384", once the handshake is done.
    package var cipher: String? {
        SSL_get_current_cipher(ssl).map { String(cString: SSL_CIPHER_get_name($0)) }
    }

    /// The protocol that the peer chose of `TLSSettings.alpn`, nil if it chose none.
    package var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The name that a client has asked this server for, nil if none.
    package var requestedName: String? {
        guard settings.role == .server else { return nil }
        return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    /// The certificates as the peer sent them, its own first, once the handshake has come that far.
    package var peerCertificates: [TLSCertificate] {
        let chain = TLSCertificate.chain(SSL_get_peer_cert_chain(ssl))
        // To a server OpenSSL shows the client's own certificate apart from the others.
        guard settings.role == .server, let own = SSL_get1_peer_certificate(ssl) else { return chain }
        defer { X509_free(own) }
        return [TLSCertificate(own)] + chain
    }

    /// The subject of the peer's own certificate; empty if there is none.
    package var peerSubject: String {
        guard let own = SSL_get1_peer_certificate(ssl) else { return "" }
        defer { X509_free(own) }
        return TLSCertificate.text(of: X509_get_subject_name(own))
    }

    /// What is wrong with the peer's certificate, the first of what is; nil if nothing is, or it was not seen.
    /// With `Verification.none` the handshake goes on in spite of it, and this says in spite of what.
    package var certificateProblem: CertificateProblem? { problems.first }

    /// The peer's certificate was checked in full, in this handshake or in that of the session that was taken up
    /// again, and nothing was wrong with it: neither settings nor a program's answer have overlooked anything.
    var isPeerVerified: Bool {
        settings.verification == .full && settings.tolerance.isEmpty && problems.isEmpty
    }
}
