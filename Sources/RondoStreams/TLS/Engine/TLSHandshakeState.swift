// The questions in the middle of a handshake: whether to trust the peer, and which identity to show.
//
// OpenSSL asks through callbacks that must answer at once or ask to be called later; in the second case
// SSL_do_handshake returns, and its next call runs the callback again. A callback here therefore only makes
// the question, and the engine's owner takes it from `takeQuestion()` when `handshake()` returns `.waits`. No
// user code runs inside OpenSSL.

internal import CRondoOpenSSL
internal import RondoCore

/// A question that a handshake asks the program.
package enum TLSQuestion: Sendable {
    case trust(TLSTrust)
    case identity(TLSIdentityRequest)
}

/// The state of a handshake that OpenSSL's callbacks use: its input and its findings.
///
/// Threads: one at a time, like the engine that owns it.
final class TLSHandshakeState {
    /// The questions of a handshake that may ask the program. Removed when the handshake is done.
    struct Questions {
        var asksForTrust = false
        var asksForIdentity = false
        /// The settings' handlers, for `ChannelOpening`, which passes questions on and sets these because the
        /// channel's own handlers come first.
        var trustHandler: TLSTrustHandler?
        var identityHandler: TLSIdentityHandler?
        /// A question that was made and not taken yet.
        var question: TLSQuestion?
        var trust: TLSPromise<TLSTrust.Decision>?
        var identity: TLSPromise<TLSIdentityRequest.Decision>?

        var waits: Bool {
            (trust != nil && trust?.value == nil) || (identity != nil && identity?.value == nil)
        }
    }

    /// Retained because OpenSSL has pointers into its memory.
    let context: TLSContext
    /// Owned by the engine, which frees it.
    let ssl: OpaquePointer
    /// On a client, the name for SNI and the certificate check; on a server, the client's name in errors.
    let peerName: String
    let sessions: TLSSessionCache

    // Set from outside: the engine takes a session from the cache before the handshake and drops afterwards
    // what only the handshake needs; the verifier adds the problems that it finds.

    /// The key under which a client's sessions are kept; nil: none are kept.
    var sessionKey: TLSSessionCache.Key?
    /// The session of an earlier connection that this client has offered.
    var offered: TLSSessionCache.Session?
    /// Nil: the program is not asked.
    var questions: Questions?
    /// The problems of the peer's certificates, accepted or not, in the order of OpenSSL's checks.
    var problems: [CertificateProblem] = []
    /// True if more problems were found than `problems` may hold.
    var hasDroppedProblems = false
    /// The time when the result of this handshake's checks expires, in seconds since 1970.
    var trustEnds = 0
    /// The reason for which a callback has failed; it says more than OpenSSL's words for that failure.
    private(set) var callbackFailure: TLSError.Reason?

    init(_ ssl: OpaquePointer, _ context: TLSContext, peerName: String, sessions: TLSSessionCache) {
        self.ssl = ssl
        self.context = context
        self.peerName = peerName
        self.sessions = sessions
    }

    /// Stores this object in the SSL's application data, where the callbacks find it.
    func install() throws(TLSError) {
        // Unretained, because the engine owns both this object and the SSL, and the callbacks run only inside
        // its calls.
        guard SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) == 1 else {
            OpenSSLErrors.clear()
            throw TLSError(.system(ENOMEM), host: peerName)
        }
    }

    var settings: TLSSettings { context.settings }

    /// Whether the server has asked for a certificate, and this client has none to show. A server of TLS 1.2
    /// that requires one says no more than `handshake_failure` (RFC 5246 §7.4.6); TLS 1.3 has an alert of its
    /// own for it.
    var lacksCertificate: Bool {
        // The list of authorities is empty if the server names none, and nil before it has asked.
        context.settings.role == .client && SSL_get0_peer_CA_list(ssl) != nil
            && SSL_get_certificate(ssl) == nil
    }

    /// The handshake state of this `SSL *`.
    static func of(_ ssl: OpaquePointer) -> TLSHandshakeState? {
        SSL_get_ex_data(ssl, 0).map { Unmanaged<TLSHandshakeState>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: - Questions

    func ask(forTrust: Bool, forIdentity: Bool) {
        guard forTrust || forIdentity else { return }
        questions = Questions(asksForTrust: forTrust, asksForIdentity: forIdentity)
    }

    func takeQuestion(whenDecided told: @escaping @Sendable () -> Void) -> TLSQuestion? {
        guard let question = questions?.question else { return nil }
        questions?.question = nil
        switch question {
        case .trust(let trust): trust.promise.onFulfilled(told)
        case .identity(let request): request.promise.onFulfilled(told)
        }
        return question
    }

    // MARK: - Trust

    /// The program's decision; nil if it was not asked or has not decided.
    var decision: TLSTrust.Decision? { questions?.trust?.value }

    /// True if the program was not asked, or has left every decision to the settings.
    var isDecidedBySettings: Bool {
        guard let questions else { return true }
        if let trust = questions.trust {
            guard case .byDefault = trust.value else { return false }
        }
        if let identity = questions.identity {
            guard case .byDefault = identity.value else { return false }
        }
        return true
    }

    /// Makes the question whether to trust the peer, after the checks.
    ///
    /// - Returns: False if the program is not to be asked.
    func askForTrust(_ store: OpaquePointer) -> Bool {
        guard questions?.asksForTrust ?? false else { return false }
        let shown = TLSCertificate.chain(X509_STORE_CTX_get0_untrusted(store))
        let trust = TLSTrust(
            host: peerName, certificates: shown,
            chain: TLSCertificate.chain(X509_STORE_CTX_get0_chain(store)),
            problems: problems, refusal: refusal)
        questions?.question = .trust(trust)
        questions?.trust = trust.promise
        // A server's handshake cannot be suspended here; the engine waits for the answer when it is done.
        if settings.role == .client { _ = rondo_SSL_set_retry_verify(ssl) }
        return true
    }

    // MARK: - Identity

    static func installIdentityCallback(on context: OpaquePointer) {
        SSL_CTX_set_cert_cb(context, chooseIdentity, nil)
    }

    /// OpenSSL's callback for the certificate to show. 1 continues, 0 fails, -1 suspends the handshake.
    private static let chooseIdentity: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
        ssl, _ in
        guard let ssl, let state = TLSHandshakeState.of(ssl) else { return 1 }
        return state.chooseIdentity()
    }

    private func chooseIdentity() -> Int32 {
        guard let questions, questions.asksForIdentity else { return 1 }
        switch questions.identity?.value {
        case .byDefault: return 1
        case .useNone:
            SSL_certs_clear(ssl)
            return 1
        case .use(let identity):
            guard identity.use({ SSL_use_cert_and_key(ssl, $0, $1, $2, 1) }) else {
                let words = OpenSSLErrors.drainedWords()
                callbackFailure = .settings(
                    "the identity \(identity.certificates[0]) cannot be used: \(words)")
                return 0
            }
            return 1
        case nil:
            if questions.identity == nil { askForIdentity() }
            return -1
        }
    }

    private func askForIdentity() {
        let names = TLSCertificate.pointers(in: SSL_get0_peer_CA_list(ssl)).prefix(
            TLSIdentityRequest.issuerLimit)
        let request = TLSIdentityRequest(
            host: peerName, issuers: names.map { TLSCertificate.text(of: $0) },
            encodedIssuers: names.map { name in TLSCertificate.encoded { i2d_X509_NAME(name, $0) } })
        questions?.question = .identity(request)
        questions?.identity = request.promise
    }
}
