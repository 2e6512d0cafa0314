// The questions in the middle of a handshake: whether to trust the peer, and which identity to show.
//
// OpenSSL asks by callbacks that must answer at once, or say that they cannot: then SSL_do_handshake returns,
// and the next call asks again. So a callback here makes the question, and the engine's owner takes it from
// `takeQuestion()` when `handshake()` says that it waits. No user's code runs inside OpenSSL.

internal import CRondoOpenSSL
internal import RondoCore

/// What a handshake asks of the program.
package enum TLSQuestion: Sendable {
    case trust(TLSTrust)
    case identity(TLSIdentityRequest)
}

/// What a handshake is to be like, and what it has found out: what OpenSSL's callbacks work with.
///
/// Threads: one at a time, as the engine that owns it.
final class TLSHandshakeState {
    /// What a handshake has asked, and whether it may ask. Gone when the handshake is done.
    struct Asking {
        var asksForTrust = false
        var asksForIdentity = false
        /// The settings' handlers, for the owner that passes questions on.
        var trustHandler: TLSTrustHandler?
        var identityHandler: TLSIdentityHandler?
        /// Made, and not taken yet.
        var question: TLSQuestion?
        var trust: TLSAnswer<TLSTrust.Decision>?
        var identity: TLSAnswer<TLSIdentityRequest.Decision>?

        var waits: Bool {
            (trust != nil && trust?.value == nil) || (identity != nil && identity?.value == nil)
        }
    }

    /// Holds what OpenSSL was given pointers into.
    let context: TLSContext
    /// The engine's, which frees it.
    let ssl: OpaquePointer
    /// The name that was asked for and is looked for in the certificate; of a server, what its errors call
    /// the client.
    let peerName: String
    let sessions: TLSSessionCache

    // The engine takes a session before the handshake, and drops the values that only the handshake needs after it; the
    // verifier notes what it finds.

    /// Under which a client's sessions are kept; nil: they are not.
    var sessionKey: TLSSessionCache.Key?
    /// The session of an earlier connection that the server was offered.
    var offered: TLSSessionCache.Session?
    /// Nil: nothing is asked.
    var asking: Asking?
    /// The problems of the peer's certificates, accepted or not, in the order of OpenSSL's checks.
    var problems: [CertificateProblem] = []
    /// True if problems were found beyond those in `problems`.
    var hasDroppedProblems = false
    /// Until when what was checked in this handshake is as it was found, in seconds since 1970.
    var trustEnds = 0
    /// What a callback could not do; it says more than OpenSSL's words for its failure.
    private(set) var callbackFailure: TLSError.Reason?

    init(_ ssl: OpaquePointer, _ context: TLSContext, peerName: String, sessions: TLSSessionCache) {
        self.ssl = ssl
        self.context = context
        self.peerName = peerName
        self.sessions = sessions
    }

    /// Makes the SSL lead to it, for callbacks.
    func install() throws(TLSError) {
        // Unretained, because the engine owns this and the SSL, and they come inside its calls only.
        guard SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) == 1 else {
            OpenSSLErrors.clear()
            throw TLSError(.system(ENOMEM), host: peerName)
        }
    }

    var settings: TLSSettings { context.settings }

    /// The state of the handshakes of this `SSL *`.
    static func of(_ ssl: OpaquePointer) -> TLSHandshakeState? {
        SSL_get_ex_data(ssl, 0).map { Unmanaged<TLSHandshakeState>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: - Questions

    func ask(forTrust: Bool, forIdentity: Bool) {
        guard forTrust || forIdentity else { return }
        asking = Asking(asksForTrust: forTrust, asksForIdentity: forIdentity)
    }

    func takeQuestion(whenAnswered told: @escaping @Sendable () -> Void) -> TLSQuestion? {
        guard let question = asking?.question else { return nil }
        asking?.question = nil
        switch question {
        case .trust(let trust): trust.answer.whenGiven(told)
        case .identity(let request): request.answer.whenGiven(told)
        }
        return question
    }

    // MARK: - Trust

    /// The program's decision, if it was asked and has decided.
    var decision: TLSTrust.Decision? { asking?.trust?.value }

    /// The program was not asked, or has left everything to the settings.
    var isDecidedBySettings: Bool {
        guard let asking else { return true }
        if let trust = asking.trust {
            guard case .byDefault = trust.value else { return false }
        }
        if let identity = asking.identity {
            guard case .byDefault = identity.value else { return false }
        }
        return true
    }

    /// Asks about the peer whose checks are done.
    ///
    /// - Returns: False if the program is not to be asked.
    func askForTrust(_ store: OpaquePointer) -> Bool {
        guard asking?.asksForTrust ?? false else { return false }
        let shown = TLSCertificate.chain(X509_STORE_CTX_get0_untrusted(store))
        let trust = TLSTrust(
            host: peerName, certificates: shown,
            chain: TLSCertificate.chain(X509_STORE_CTX_get0_chain(store)),
            problems: problems, refusal: refusal)
        asking?.question = .trust(trust)
        asking?.trust = trust.answer
        // A server's handshake cannot be held up here; it is looked at again when that is done.
        if settings.role == .client { _ = rondo_SSL_set_retry_verify(ssl) }
        return true
    }

    // MARK: - Identity

    static func installIdentityCallback(on context: OpaquePointer) {
        SSL_CTX_set_cert_cb(context, chooseIdentity, nil)
    }

    /// 1 goes on, 0 fails, -1 comes back later.
    private static let chooseIdentity: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
        ssl, _ in
        guard let ssl, let state = TLSHandshakeState.of(ssl) else { return 1 }
        return state.chooseIdentity()
    }

    private func chooseIdentity() -> Int32 {
        guard let asking, asking.asksForIdentity else { return 1 }
        switch asking.identity?.value {
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
            if asking.identity == nil { askForIdentity() }
            return -1
        }
    }

    private func askForIdentity() {
        let names = TLSCertificate.pointers(in: SSL_get0_peer_CA_list(ssl)).prefix(
            TLSIdentityRequest.issuerLimit)
        let request = TLSIdentityRequest(
            host: peerName, issuers: names.map { TLSCertificate.text(of: $0) },
            encodedIssuers: names.map { name in TLSCertificate.encoded { i2d_X509_NAME(name, $0) } })
        asking?.question = .identity(request)
        asking?.identity = request.answer
    }
}
