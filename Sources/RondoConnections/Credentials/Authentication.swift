internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

// The challenges of a server, or of a proxy, during one load (rules UC-43 to UC-52).
//
// A 401 names challenges, each with its scheme and protection space. They are tried in order, the strongest
// scheme first. If a credential was sent, it has failed, unless it was accepted before and no challenge is
// for its space. Then the delegate, the URL and the storage are asked for another credential, in the order of
// the rules. If the delegate rejects a space, the next challenge is tried. A credential that was once
// accepted is sent with every further request of the load to that server.

/// The challenges of one side, a server or a proxy, and the credentials for them, as a value.
struct Authentication {
    /// The source of a credential, which decides whether it may be tried without asking.
    enum CredentialSource: Equatable {
        case url, storage, delegate
    }

    /// A question about one challenge, with the credential that is known for it.
    struct Question {
        let challenge: PasswordChallenge
        let space: URLProtectionSpace
        /// The credential that has failed before, or else the one that would be tried.
        let proposed: URLCredential?
        let failures: Int
        /// A credential that may be used without showing the challenge to the delegate.
        let silent: (credential: URLCredential, source: CredentialSource)?
    }

    enum Step {
        /// Send the same credential once more, because only its nonce was stale.
        case repeatCredential
        case ask(Question)
        /// No credential is left to try.
        case giveUp
    }

    private struct Space: Hashable {
        let realm: String
        let method: String
    }

    private enum Session {
        case basic([UInt8])
        case digest(DigestSession)
    }

    /// The credential that is being sent and has not been refused yet.
    private struct Current {
        var space: Space
        var protectionSpace: URLProtectionSpace
        var credential: URLCredential
        var source: CredentialSource
        var session: Session
        var wasAccepted = false
        var lastAuthorization: DigestSession.Authorization?
    }

    private var current: Current?
    private var failures: [Space: (count: Int, credential: URLCredential)] = [:]
    private var rejected: Set<Space> = []
    /// The sources whose credentials were tried in a space.
    private var tried: [Space: [CredentialSource]] = [:]
    /// The number of times that a nonce was refused as stale since a response was last accepted.
    private var renewals = 0
    /// The maximum of `renewals` in a row; the next one counts as a refusal, because a server could call
    /// every nonce stale.
    static let maximumRenewals = 3
    /// The number of credentials that were tried without asking the delegate since a response was last
    /// accepted.
    private var silentAttempts = 0
    /// The maximum of `silentAttempts` in a row; after it the delegate is always asked, because a server
    /// could name another realm in each challenge. It equals the number of challenges that are read from one
    /// response.
    static let maximumSilentAttempts = Challenge.maximumCount
    /// The number of credentials that were refused since a response was last accepted.
    private var refusals = 0
    /// The maximum of `refusals` in a row; after it the response is the result, and the delegate is not
    /// asked. Otherwise a load would never end if the delegate always gave a credential and the server always
    /// refused it.
    static let maximumRefusals = 100
    /// The challenges that have not been tried yet.
    private var open: [PasswordChallenge] = []
    /// The sentence that says why a credential could not be sent; nil once it was reported.
    private var problem: String?

    // MARK: - Challenged

    /// Handles a response with these challenges.
    ///
    /// - Parameters:
    ///   - makeSpace: Makes the protection space of a realm and a method.
    ///   - candidates: Returns the credential of the URL, and that of the storage, for a space.
    mutating func challenged(
        by challenges: [Challenge], makeSpace: (_ realm: String, _ method: String) -> URLProtectionSpace,
        candidates: (URLProtectionSpace) -> [(URLCredential, CredentialSource)]
    ) -> Step {
        open = PasswordChallenge.strongestFirst(challenges)
        if let refused = current {
            current = nil
            if renewals < Self.maximumRenewals, renew(refused) {
                renewals += 1
                return .repeatCredential
            }
            noteRefusal(of: refused)
            refusals += 1
            if refusals == Self.maximumRefusals { return .giveUp }
        }
        return next(makeSpace: makeSpace, candidates: candidates)
    }

    /// Counts a failure of the credential, unless it was accepted and no challenge is for its space: then the
    /// server has asked for another realm, which says nothing about the credential (RFC 9110 §11.5), and it
    /// may be tried again.
    private mutating func noteRefusal(of refused: Current) {
        let isInSpace = open.contains { Self.space(of: $0) == refused.space }
        if !isInSpace, refused.wasAccepted {
            tried[refused.space]?.removeAll { $0 == refused.source }
        } else {
            failures[refused.space] = ((failures[refused.space]?.count ?? 0) + 1, refused.credential)
        }
    }

    /// Takes the server's new nonce if only the old one was refused (RFC 7616 §3.3, `stale`), so that the
    /// user need not be asked again.
    private mutating func renew(_ refused: Current) -> Bool {
        guard case .digest = refused.session else { return false }
        for challenge in open {
            guard case .digest(let digest) = challenge, digest.isStale,
                Self.space(of: challenge) == refused.space,
                // An error is impossible here: the credential was used before.
                let session = try? Self.session(for: challenge, refused.credential)
            else { continue }
            var renewed = refused
            renewed.session = session
            renewed.lastAuthorization = nil
            current = renewed
            return true
        }
        return false
    }

    /// The next step, for the first challenge that was not rejected.
    mutating func next(
        makeSpace: (_ realm: String, _ method: String) -> URLProtectionSpace,
        candidates: (URLProtectionSpace) -> [(URLCredential, CredentialSource)]
    ) -> Step {
        open.removeAll { rejected.contains(Self.space(of: $0)) }
        guard let challenge = open.first else { return .giveUp }
        let space = Self.space(of: challenge)
        let protectionSpace = makeSpace(space.realm, space.method)
        let silent = candidates(protectionSpace).first { _, source in
            silentAttempts < Self.maximumSilentAttempts && !(tried[space] ?? []).contains(source)
        }
        let failure = failures[space]
        return .ask(
            Question(
                challenge: challenge, space: protectionSpace,
                proposed: failure?.credential ?? silent?.0, failures: failure?.count ?? 0,
                silent: silent.map { (credential: $0.0, source: $0.1) }))
    }

    /// - Returns: Whether the credential can be sent: it has a name and a password that fit the scheme. If it
    ///   cannot, `takeProblem()` says why.
    mutating func use(_ credential: URLCredential, from source: CredentialSource, for question: Question)
        -> Bool
    {
        let space = Self.space(of: question.challenge)
        tried[space, default: []].append(source)
        if source != .delegate { silentAttempts += 1 }
        let session: Session
        do throws(Unusable) {
            session = try Self.session(for: question.challenge, credential)
        } catch {
            problem = error.description
            return false
        }
        current = Current(
            space: space, protectionSpace: question.space, credential: credential, source: source,
            session: session)
        return true
    }

    /// The sentence that says why a credential could not be sent; nil if it could, or if the sentence was
    /// taken before.
    mutating func takeProblem() -> String? {
        defer { problem = nil }
        return problem
    }

    mutating func reject(_ question: Question) { rejected.insert(Self.space(of: question.challenge)) }

    // MARK: - Authorizing requests

    /// The value of Authorization, or Proxy-Authorization, for a request; nil if there is no credential to
    /// send.
    ///
    /// - Parameter bodyHash: Returns the hash of the whole body, if `protectingHash` asks for one; nil if it
    ///   is not known.
    mutating func fieldValue(
        method: String, target: String, bodyHash: (DigestHash) -> String?
    ) -> [UInt8]? {
        guard var current else { return nil }
        switch current.session {
        case .basic(let value):
            return value
        case .digest(var session):
            let hash = session.needsBodyHash ? bodyHash(session.challenge.algorithm.hash) : nil
            var authorization: DigestSession.Authorization?
            do throws(DigestSession.Failure) {
                authorization = try session.authorize(method: method, target: target, bodyHash: hash)
            } catch {
                problem = error.description
            }
            current.session = .digest(session)
            current.lastAuthorization = authorization
            self.current = current
            return authorization?.fieldValue
        }
    }

    /// The hash function by which the request's body has to be hashed before it is sent (`auth-int`, RFC 7616
    /// §3.4.3); nil: none has to be.
    var protectingHash: DigestHash? {
        guard case .digest(let session) = current?.session, session.needsBodyHash else { return nil }
        return session.challenge.algorithm.hash
    }

    /// The values by which the response to a CONNECT is checked: they tell whether the proxy knows the
    /// password too.
    var proof: (session: DigestSession, authorization: DigestSession.Authorization)? {
        guard let current, case .digest(let session) = current.session,
            let authorization = current.lastAuthorization
        else { return nil }
        return (session, authorization)
    }

    /// The conclusion from a response.
    enum Acceptance {
        /// The response is accepted. The value is a credential of the delegate that should be stored, if
        /// there is one.
        case accepted((space: URLProtectionSpace, credential: URLCredential)?)
        /// The other side claims to know the password, and the claim is false.
        case refuted
    }

    /// Handles a response that is not a challenge: the credential that was sent is accepted.
    ///
    /// For the parameters see `readInfo(_:laterHash:)`.
    mutating func accepted(info: [UInt8]?, laterHash: (DigestHash) -> Void) -> Acceptance {
        guard readInfo(info, laterHash: laterHash) else { return .refuted }
        guard var current else { return .accepted(nil) }
        renewals = 0
        silentAttempts = 0
        refusals = 0
        current.wasAccepted = true
        let isNew = current.source == .delegate
        // A credential is stored only once.
        if isNew { current.source = .storage }
        self.current = current
        return .accepted(isNew ? (current.protectionSpace, current.credential) : nil)
    }

    /// Handles the claim of a response's sender to know the password, and the next nonce that it names. This
    /// is all that counts of a response that leaves open whether the credential was accepted.
    ///
    /// If a server sends `rspauth`, it has to be right (RFC 7616 §3.5). Most servers send none, which does
    /// not fail the load.
    ///
    /// - Parameters:
    ///   - info: The value of Authentication-Info, or Proxy-Authentication-Info.
    ///   - laterHash: Called if the response's body is protected too: a hash of the body by this function has
    ///     to be passed to `confirms(_:bodyHash:)` once the body is here.
    /// - Returns: False if the claim is false.
    mutating func readInfo(_ info: [UInt8]?, laterHash: (DigestHash) -> Void) -> Bool {
        guard let info, var current, let sent = current.lastAuthorization,
            case .digest(var session) = current.session
        else { return true }
        switch session.received(info, to: sent) {
        case .absent, .confirmed: break
        case .bodyHashMissing: laterHash(session.challenge.algorithm.hash)
        case .refuted: return false
        }
        current.session = .digest(session)
        self.current = current
        return true
    }

    /// Whether the claim in the response's head holds for a body with this hash.
    func confirms(_ info: [UInt8], bodyHash: String?) -> Bool {
        guard let (known, sent) = proof else { return true }
        var session = known
        return session.received(info, to: sent, bodyHash: bodyHash ?? "") != .refuted
    }

    /// Forgets everything, because the load goes to another server.
    mutating func leftOrigin() { self = Authentication() }

    var isIdle: Bool { current == nil }

    // MARK: - Schemes

    private static func space(of challenge: PasswordChallenge) -> Space {
        switch challenge {
        case .basic: Space(realm: challenge.realm, method: NSURLAuthenticationMethodHTTPBasic)
        case .digest: Space(realm: challenge.realm, method: NSURLAuthenticationMethodHTTPDigest)
        }
    }

    /// The reason why a credential cannot answer a challenge.
    private enum Unusable: Error, CustomStringConvertible {
        case incomplete
        case basic(BasicAuthentication.Failure)
        case digest(DigestSession.Failure)

        var description: String {
            switch self {
            case .incomplete: "A credential without user name and password cannot answer a challenge of HTTP."
            case .basic(let failure): failure.description
            case .digest(let failure): failure.description
            }
        }
    }

    private static func session(
        for challenge: PasswordChallenge, _ credential: URLCredential
    ) throws(Unusable) -> Session {
        guard let user = credential.user, let password = credential.password else { throw .incomplete }
        switch challenge {
        case .basic:
            do throws(BasicAuthentication.Failure) {
                let basic = try BasicAuthentication(user: user, password: password)
                return .basic(Array(basic.fieldValue.utf8))
            } catch {
                throw .basic(error)
            }
        case .digest(let digest):
            do throws(DigestSession.Failure) {
                return .digest(try DigestSession(digest, user: user, password: password))
            } catch {
                throw .digest(error)
            }
        }
    }
}
