// What the handshake asks, what was agreed upon, and what the peer has shown: the answers of its TLSHandshakeState.
extension TLSEngine {
    package typealias Question = TLSQuestion

    /// Asks instead of deciding by the settings; to be called before the handshake.
    package func ask(forTrust: Bool, forIdentity: Bool) {
        state.ask(forTrust: forTrust, forIdentity: forIdentity)
    }

    /// The question for whose answer the handshake waits; each comes once. `told` is called when the answer is
    /// there, from any thread: call `handshake()` again.
    package func takeQuestion(whenAnswered told: @escaping @Sendable () -> Void) -> TLSQuestion? {
        state.takeQuestion(whenAnswered: told)
    }

    /// "TLSv1.3", once the handshake is done.
    package var version: String { state.version }
    /// "TLS_AES_256_GCM_SHA384", once the handshake is done.
    package var cipher: String? { state.cipher }
    /// Whether a session of an earlier connection was taken up again.
    package var isResumed: Bool { state.isResumed }
    /// The protocol that the peer chose of `TLSSettings.alpn`, nil if it chose none.
    package var applicationProtocol: String? { state.applicationProtocol }
    /// The certificates as the peer sent them, its own first, once the handshake has come that far.
    package var peerCertificates: [TLSCertificate] { state.peerCertificates }
    /// The subject of the peer's own certificate; empty if there is none.
    package var peerSubject: String { state.peerSubject }
    /// The first problem of the peer's certificate; nil if there is none, or it was not seen.
    /// With `Verification.none` the handshake goes on in spite of it, and this says in spite of what.
    package var certificateProblem: CertificateProblem? { state.problems.first }
    /// The peer's certificate was checked in full, and nothing was overlooked.
    var isPeerVerified: Bool { state.isPeerVerified }
    /// To be asked once the handshake is done.
    package var information: TLSInformation { state.information }
}
