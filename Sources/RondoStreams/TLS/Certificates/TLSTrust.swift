/// The question whether to trust a peer, for whose answer the handshake waits.
///
/// It carries the certificates that the peer has sent and the result of the checks. Answer with `accept()`,
/// `reject()` or `useDefault()`, at once or later, from any thread; the first answer counts. Until then the
/// connection waits, while everything else in its run loop goes on. If the object is released without an
/// answer, `useDefault()` applies.
///
/// On a client the answer comes before anything is sent that only the right server may see, a client
/// certificate included. A server asks when the client has finished its handshake, and neither reads nor
/// writes a byte of the connection before the answer; a client that is rejected therefore sees a secured
/// connection that is then closed, instead of an alert. The server cannot ask earlier: OpenSSL's function
/// that interrupts a verification (`SSL_set_retry_verify`, since 3.0) is defined for a client's callback
/// only, and in a server's verification every result but 1 ends the handshake.
public final class TLSTrust: Sendable {
    enum Decision: Sendable {
        case accept, reject, byDefault
    }

    /// The host of the connection: the name that the certificate must have.
    public let host: String
    /// The certificates that the peer has sent, its own first. Never empty.
    public let certificates: [TLSCertificate]
    /// The chain that was verified, from the peer's own certificate to an authority, as far as it could be
    /// built. It may contain an authority that the peer did not send.
    public let chain: [TLSCertificate]
    /// The problems, in the order in which they were found; empty if there are none.
    public let problems: [CertificateProblem]
    /// Whether the settings accept the peer, as `useDefault()` would.
    public let isTrusted: Bool
    /// A sentence for a person that says why the settings refuse the peer; nil if they accept it.
    public let explanation: String?

    let promise = TLSPromise<Decision>()

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

    deinit { promise.fulfill(.byDefault) }

    /// Accepts this peer, whatever is wrong with its certificates.
    public func accept() { promise.fulfill(.accept) }

    /// Closes the connection, even if its certificates are valid.
    public func reject() { promise.fulfill(.reject) }

    /// Leaves the decision to the settings: continues if `isTrusted`, and fails with the first problem
    /// otherwise.
    public func useDefault() { promise.fulfill(.byDefault) }
}

/// A handler that decides which peers to trust, in place of `TLSSettings` alone.
///
/// A class, so that settings stay comparable: settings with different handlers are unequal.
public final class TLSTrustHandler: Sendable {
    let body: @Sendable (TLSTrust) -> Void

    /// - Parameter body: Called for each connection that is not resumed, whether or not its certificates have
    ///   problems, on the thread of a run loop that serves the connection, with no lock held.
    public init(_ body: @escaping @Sendable (TLSTrust) -> Void) { self.body = body }
}

extension TLSTrustHandler: Hashable {
    public static func == (a: TLSTrustHandler, b: TLSTrustHandler) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
