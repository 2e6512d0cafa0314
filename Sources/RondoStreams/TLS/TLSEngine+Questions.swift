// What is asked in the middle of a handshake: whether to trust the peer, and who this side is.
//
// OpenSSL asks by callbacks that must answer at once, or say that they cannot: then SSL_do_handshake returns,
// and the next call asks again. So a callback here makes the question, and the engine's owner takes it from
// `takeQuestion()` when `handshake()` says that it waits. No user's code runs inside OpenSSL.

internal import COpenSSL
internal import RondoCore

extension TLSEngine {
    package enum Question: Sendable {
        case trust(TLSTrust)
        case identity(TLSIdentityRequest)
    }

    /// What a handshake has asked, and whether it may ask. Gone when the handshake is done.
    struct Asking {
        var asksForTrust = false
        var asksForIdentity = false
        /// The settings' handlers, for whoever passes questions on.
        var trustHandler: TLSTrustHandler?
        var identityHandler: TLSIdentityHandler?
        /// Made, and not taken yet.
        var question: Question?
        var trust: TLSAnswer<TLSTrust.Decision>?
        var identity: TLSAnswer<TLSIdentityRequest.Decision>?

        var waits: Bool {
            (trust != nil && trust?.value == nil) || (identity != nil && identity?.value == nil)
        }
    }

    /// Asks instead of deciding by the settings; to be called before the handshake.
    package func ask(forTrust: Bool, forIdentity: Bool) {
        guard forTrust || forIdentity else { return }
        asking = Asking(asksForTrust: forTrust, asksForIdentity: forIdentity)
    }

    /// The question for whose answer the handshake waits; each comes once. `told` is called when the answer is
    /// there, from any thread: call `handshake()` again.
    package func takeQuestion(whenAnswered told: @escaping @Sendable () -> Void) -> Question? {
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

    /// Nobody was asked, or has left everything to the settings.
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
    /// - Returns: False if nobody is to be asked.
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
        guard let ssl, let engine = TLSEngine.of(ssl) else { return 1 }
        return engine.chooseIdentity()
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
