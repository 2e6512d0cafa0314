/// The results of a TLS handshake.
public struct TLSInformation: Hashable, Sendable {
    /// The version, such as "TLSv1.3".
    public let version: String
    /// The cipher suite, such as "TLS_AES_256_GCM_SHA384".
    public let cipherSuite: String
    /// The protocol of `TLSSettings.alpn` that was agreed on ("h2"), nil if none was.
    public let applicationProtocol: String?
    /// On a server, the name that the client has asked for (SNI), nil if none; on a client always nil.
    public let requestedName: String?
    /// The peer's certificates, its own first; empty if it showed none. For a resumed connection, those of
    /// the original connection.
    public let peerCertificates: [TLSCertificate]
    /// The certificates' problems in spite of which the connection was accepted; usually empty.
    public let problems: [CertificateProblem]
    /// Whether an earlier session was resumed, without a new verification.
    public let isResumed: Bool
}
