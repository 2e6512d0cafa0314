// The questions of the handshake, its results and the peer's certificates: forwarded to the engine's
// TLSHandshakeState.
extension TLSEngine {
    package typealias Question = TLSQuestion

    /// Makes the handshake ask instead of deciding by the settings; must be called before the handshake.
    package func ask(forTrust: Bool, forIdentity: Bool) {
        state.ask(forTrust: forTrust, forIdentity: forIdentity)
    }

    /// Takes the question whose answer the handshake waits for; each question is returned once. `told` is
    /// called from any thread when the answer is given; call `handshake()` again then.
    package func takeQuestion(whenDecided told: @escaping @Sendable () -> Void) -> TLSQuestion? {
        state.takeQuestion(whenDecided: told)
    }

    /// "TLSv1.3", once the handshake is done.
    package var version: String { state.version }
    /// "TLS_AES_256_GCM_SHA384", once the handshake is done.
    package var cipher: String? { state.cipher }
    /// Whether a session of an earlier connection was resumed.
    package var isResumed: Bool { state.isResumed }
    /// The protocol of `TLSSettings.alpn` that was agreed on, nil if none was.
    package var applicationProtocol: String? { state.applicationProtocol }
    /// The certificates as the peer sent them, its own first, once the handshake has come that far.
    package var peerCertificates: [TLSCertificate] { state.peerCertificates }
    /// The subject of the peer's own certificate; empty if there is none.
    package var peerSubject: String { state.peerSubject }
    /// The first problem of the peer's certificate; nil if there is none, or the certificate was not seen.
    /// With `Verification.none` the handshake succeeds in spite of the problem.
    package var certificateProblem: CertificateProblem? { state.problems.first }
    /// True if the peer's certificate was checked in full and no problem was overlooked.
    var isPeerVerified: Bool { state.isPeerVerified }
    /// The results of the handshake; valid once it is done.
    package var information: TLSInformation { state.information }
}
