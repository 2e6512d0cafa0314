/// What was agreed upon for a secured connection.
public struct TLSInformation: Hashable, Sendable {
    /// "TLSv1.3".
    public let version: String
    /// "TLS_AES_256_GCM_SHA384".
    public let cipherSuite: String
    /// The protocol that was chosen of `TLSSettings.alpn` ("h2"), nil if none was.
    public let applicationProtocol: String?
    /// To a server, the name that the client has asked for (SNI); nil if it has asked for none, and to a
    /// client.
    public let requestedName: String?
    /// The peer's certificates, its own first; empty if it showed none. Of a resumed connection those of the
    /// first one.
    public let peerCertificates: [TLSCertificate]
    /// Their problems, in spite of which the connection was accepted; empty as a rule.
    public let problems: [CertificateProblem]
    /// Whether an earlier session was taken up again, without a new verification.
    public let isResumed: Bool
}
