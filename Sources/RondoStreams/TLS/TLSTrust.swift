/// The question whether to trust a peer, while its handshake waits for the answer.
///
/// It carries what the peer has shown and what the checks have found. Answer by `accept()`, `reject()` or
/// `useDefault()`, at once or later, from any thread; the first answer counts. Meanwhile nothing goes on in
/// the connection, and everything else in its run loop does. An object that is let go of without an answer
/// answers by `useDefault()`.
///
/// On the client's side the answer decides before anything is sent that only the right server may see, a
/// client's certificate included. A server asks when the client has finished its handshake, and neither reads
/// nor writes a byte of the connection before the answer; but a client that is rejected sees a connection
/// that was secured and then closed, instead of an alert. It cannot be asked earlier: OpenSSL's way to
/// interrupt a verification (`SSL_set_retry_verify`, since 3.0) is for a client's callback, and undefined
/// elsewhere; where a server verifies, every answer but 1 ends the handshake.
public final class TLSTrust: Sendable {
    enum Decision: Sendable {
        case accept, reject, byDefault
    }

    /// The host that the connection is to: the name that the certificate has to have.
    public let host: String
    /// The certificates as the peer has shown them, its own first. Never empty.
    public let certificates: [TLSCertificate]
    /// Those from the peer's own to an authority, as far as they could be put together; what verification
    /// is about. It may hold an authority that the peer did not show.
    public let chain: [TLSCertificate]
    /// The problems, in the order in which they were found; empty if there are none.
    public let problems: [CertificateProblem]
    /// What `useDefault()` does: whether the settings accept the peer.
    public let isTrusted: Bool
    /// Why the settings do not accept the peer, in a sentence for a person; nil if they do.
    public let explanation: String?

    let answer = TLSAnswer<Decision>()

    init(
        host: String, certificates: [TLSCertificate], chain: [TLSCertificate],
        problems: [CertificateProblem], refusal: CertificateProblem?
    ) {
        self.host = host
        self.certificates = certificates
        self.chain = chain
        self.problems = problems
        isTrusted = refusal == nil
        explanation = refusal?.description(host: host)
    }

    deinit { answer.give(.byDefault) }

    /// Goes on with this peer, whatever is wrong with its certificates.
    public func accept() { answer.give(.accept) }

    /// Ends the connection, however right its certificates are.
    public func reject() { answer.give(.reject) }

    /// Leaves it to the settings: goes on if `isTrusted`, and fails with the first problem otherwise.
    public func useDefault() { answer.give(.byDefault) }
}

/// A handler that decides which peers to trust, in place of `TLSSettings` alone.
///
/// An object, so that settings stay comparable: settings with different handlers are different.
public final class TLSTrustHandler: Sendable {
    let body: @Sendable (TLSTrust) -> Void

    /// - Parameter body: Called for each connection that is not resumed, whether or not something is wrong with
    ///   the certificates; on the thread of a run loop that serves the connection, with no lock held.
    public init(_ body: @escaping @Sendable (TLSTrust) -> Void) { self.body = body }
}

extension TLSTrustHandler: Hashable {
    public static func == (a: TLSTrustHandler, b: TLSTrustHandler) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
