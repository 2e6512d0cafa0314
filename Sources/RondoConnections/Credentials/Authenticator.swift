internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Finds credentials for the challenges that a server and a proxy make to one load (rules UC-43 to UC-52).
///
/// It decides, and keeps the state of authentication; its owner sends requests and shows challenges to the
/// delegate.
final class Authenticator {
    /// The next step after a challenge.
    enum Step {
        /// Send the request again, with the credential that was found.
        case useCredential
        /// Deliver the response with the challenge as the result (rule UC-48).
        case continueWithout
        case ask(Inquiry)
        case fail(LoadFailure)
    }

    /// A challenge that the delegate is asked about.
    struct Inquiry {
        fileprivate let question: Authentication.Question
        fileprivate let isProxy: Bool
        let space: URLProtectionSpace
        let proposed: URLCredential?
        let failures: Int
        /// The response with the challenge.
        let response: URLResponse?
        let problem: String?
        /// A credential of the URL or the storage that has not failed yet.
        var silent: URLCredential? { question.silent?.credential }
    }

    /// The URL of the current request.
    private(set) var url: URL?
    /// The proxy that the current request uses.
    private(set) var proxy: StreamProxy?

    private var server = Authentication()
    private var ofProxy = Authentication()
    /// The proxy to which `ofProxy` belongs: the proxy that was used last.
    private var proxyOfCredentials: StreamProxy?
    /// Whether the proxy has refused the user of its URL.
    private var hasProxyURLFailed = false
    private var failureHead: ResponseHead?
    /// The check of the response's body against the claim in its head; nil if there is none.
    private var bodyProof: BodyProof?
    /// Called with the sentence that says why a credential cannot be sent.
    private let reportProblem: (String) -> Void

    /// Nil if no storage is read or written: the delegate (rule UC-43) or the session does not want it.
    private let credentials: StoredCredentials?

    init(_ credentials: StoredCredentials?, reportProblem: @escaping (String) -> Void) {
        self.credentials = credentials
        self.reportProblem = reportProblem
    }

    /// Notes that the next request is for `url`.
    func beginRequest(for url: URL?) { self.url = url }

    /// Sets the proxy that the current request uses; nil if there is none. A credential that was given for
    /// one proxy is not sent to another.
    func chooseProxy(_ proxy: StreamProxy?) {
        if let proxy, proxy != proxyOfCredentials {
            ofProxy = Authentication()
            hasProxyURLFailed = false
            proxyOfCredentials = proxy
        }
        self.proxy = proxy
    }

    /// Forgets the credentials of the server: they are not sent to another one (rule UC-33).
    func leaveOrigin() { server.leftOrigin() }

    // MARK: - Challenges

    /// Handles the challenge in the response `head`.
    func challenged(by head: ResponseHead) -> Step {
        let isProxy = head.status == 407
        if isProxy { hasProxyURLFailed = true }
        let challenges = Challenge.challenges(
            in: head.fields, called: isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
        let step = with(isProxy) { authentication in
            authentication.challenged(
                by: challenges, makeSpace: { protectionSpace($0, $1, isProxy: isProxy) },
                candidates: { candidates(for: $0, isProxy: isProxy) })
        }
        failureHead = head
        return nextStep(step, isProxy: isProxy)
    }

    /// Carries out the delegate's decision about `inquiry`.
    func answer(_ inquiry: Inquiry, by disposition: ChallengeDisposition) -> Step {
        let (question, isProxy) = (inquiry.question, inquiry.isProxy)
        switch disposition {
        case .use(let credential):
            return use(credential, from: .delegate, for: question, isProxy: isProxy)
        case .performDefaultHandling:
            guard let silent = question.silent else { return .continueWithout }
            return use(silent.credential, from: silent.source, for: question, isProxy: isProxy)
        case .continueWithout:
            return .continueWithout
        case .cancel:
            return .fail(.authenticationCancelled)
        case .rejectProtectionSpace:
            let step = with(isProxy) { authentication in
                authentication.reject(question)
                return authentication.next(
                    makeSpace: { protectionSpace($0, $1, isProxy: isProxy) },
                    candidates: { candidates(for: $0, isProxy: isProxy) })
            }
            return nextStep(step, isProxy: isProxy)
        }
    }

    private func nextStep(_ step: Authentication.Step, isProxy: Bool) -> Step {
        switch step {
        case .repeatCredential: return .useCredential
        case .giveUp: return .continueWithout
        case .ask(let question):
            let response = failureHead.flatMap { head in
                url.flatMap { LoadedResponse(url: $0, head: head, bodyLength: nil) }
            }
            return .ask(
                Inquiry(
                    question: question, isProxy: isProxy, space: question.space,
                    proposed: question.proposed, failures: question.failures, response: response,
                    problem: with(isProxy) { $0.takeProblem() }))
        }
    }

    private func use(
        _ credential: URLCredential, from source: Authentication.CredentialSource,
        for question: Authentication.Question, isProxy: Bool
    ) -> Step {
        if with(isProxy, { $0.use(credential, from: source, for: question) }) { return .useCredential }
        if let problem = with(isProxy, { $0.takeProblem() }) { reportProblem(problem) }
        return .continueWithout
    }

    private func with<Result>(_ isProxy: Bool, _ body: (inout Authentication) -> Result) -> Result {
        isProxy ? body(&ofProxy) : body(&server)
    }

    // MARK: - Spaces and credentials

    private func protectionSpace(_ realm: String, _ method: String, isProxy: Bool) -> URLProtectionSpace {
        let scheme = url?.scheme?.lowercased() ?? "http"
        if isProxy, let proxy {
            let isHTTPS = scheme == "https"
            return URLProtectionSpace(
                proxyHost: proxy.host, port: proxy.port,
                type: isHTTPS ? NSURLProtectionSpaceHTTPSProxy : NSURLProtectionSpaceHTTPProxy, realm: realm,
                authenticationMethod: method)
        }
        return URLProtectionSpace(
            host: url?.host ?? "", port: url?.port ?? (scheme == "https" ? 443 : 80), protocol: scheme,
            realm: realm, authenticationMethod: method)
    }

    private func candidates(
        for space: URLProtectionSpace, isProxy: Bool
    ) -> [(URLCredential, Authentication.CredentialSource)] {
        var candidates: [(URLCredential, Authentication.CredentialSource)] = []
        if isProxy {
            // Basic was already sent without a challenge.
            if let proxy, let user = proxy.userName,
                space.authenticationMethod != NSURLAuthenticationMethodHTTPBasic
            {
                let password = proxy.password ?? ""
                candidates.append(
                    (URLCredential(user: user, password: password, persistence: .none), .url))
            }
        } else if let url, let credential = Self.credential(of: url) {
            candidates.append((credential, .url))
        }
        if let stored = credentials?.defaultCredential(for: space) {
            candidates.append((stored, .storage))
        }
        return candidates
    }

    /// User and password in a URL.
    static func credential(of url: URL) -> URLCredential? {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let user = parts.user,
            !user.isEmpty
        else { return nil }
        return URLCredential(user: user, password: parts.password ?? "", persistence: .none)
    }

    // MARK: - With a request

    /// Sets the Authorization and Proxy-Authorization fields.
    ///
    /// - Parameter sent: The target as it is sent to a proxy; nil if no proxy gets the request itself.
    func setFields(
        method: String, target: String, toProxy sent: String?, in fields: inout HeaderFields,
        bodyHash: (DigestHash) -> String?
    ) {
        if !server.isIdle,
            let value = server.fieldValue(method: method, target: target, bodyHash: bodyHash)
        {
            value.withUnsafeBufferPointer { fields.set(name: "Authorization", value: $0) }
        }
        if let sent, let value = proxyAuthorization(method: method, target: sent, bodyHash: bodyHash) {
            value.withUnsafeBufferPointer { fields.set(name: "Proxy-Authorization", value: $0) }
        }
    }

    /// The value of Proxy-Authorization: the answer to the proxy's challenge, or the user in the proxy's URL.
    func proxyAuthorization(
        method: String, target: String, bodyHash: (DigestHash) -> String?
    ) -> [UInt8]? {
        if !ofProxy.isIdle {
            return ofProxy.fieldValue(method: method, target: target, bodyHash: bodyHash)
        }
        guard let proxy, let user = proxy.userName, !hasProxyURLFailed else { return nil }
        do throws(BasicAuthentication.Failure) {
            let basic = try BasicAuthentication(user: user, password: proxy.password ?? "")
            return Array(basic.fieldValue.utf8)
        } catch {
            reportProblem(error.description)
            return nil
        }
    }

    /// The values by which the proxy's response is checked: they tell whether the proxy knows the password
    /// too.
    var proxyProof: (session: DigestSession, authorization: DigestSession.Authorization)? { ofProxy.proof }

    /// The hash functions whose hashes of the body have to be in the request's head (`auth-int`, RFC 7616
    /// §3.4.3).
    func bodyHashes(toProxy: Bool) -> [DigestHash] {
        [server.protectingHash, toProxy ? ofProxy.protectingHash : nil].compactMap { $0 }
    }

    // MARK: - After a response

    /// Handles the head of a response, which may be a challenge.
    ///
    /// - Parameter isFromProxy: Whether the request went to a proxy as it was. Only then is
    ///   Proxy-Authentication-Info the proxy's (RFC 9110 §11.7.3): through a tunnel, or directly, the server
    ///   could send it.
    /// - Returns: The failure, if the response's sender does not know the password that it claims to know.
    func received(_ head: ResponseHead, isFromProxy: Bool) -> LoadFailure? {
        bodyProof = nil
        let isUndecided = Self.isUndecided(head.status)
        // A 407 comes from the proxy, and says nothing about the server's password.
        if head.status != 401, head.status != 407, !server.isIdle {
            let info = head.fields.firstBytes(of: "Authentication-Info")
            if let failure = accept(info, isUndecided: isUndecided, isProxy: false) { return failure }
        }
        if head.status != 407, !ofProxy.isIdle {
            let info = isFromProxy ? head.fields.firstBytes(of: "Proxy-Authentication-Info") : nil
            // A proxy that has made the tunnel has looked at the credential, whatever the server says through
            // it. A 401 that comes otherwise may be the proxy's own: some refuse a password by it.
            let isUndecided = isFromProxy && (isUndecided || head.status == 401)
            if let failure = accept(info, isUndecided: isUndecided, isProxy: true) { return failure }
        }
        return nil
    }

    /// Whether a response with this status leaves open whether the credential was accepted: a server that is
    /// overloaded or has failed need not have looked at it. Only the response's own maker can leave that
    /// open.
    private static func isUndecided(_ status: Int) -> Bool { status == 429 || 500...599 ~= status }

    private func accept(_ info: [UInt8]?, isUndecided: Bool, isProxy: Bool) -> LoadFailure? {
        var proof: BodyProof?
        func protect(_ hash: DigestHash) {
            if let info { proof = BodyProof(info, hash, isProxy: isProxy) }
        }
        let acceptance = with(isProxy) { authentication -> Authentication.Acceptance in
            guard isUndecided else {
                return authentication.accepted(info: info, laterHash: protect)
            }
            return authentication.readInfo(info, laterHash: protect) ? .accepted(nil) : .refuted
        }
        switch acceptance {
        case .refuted: return .failedMutualAuthentication(isProxy: isProxy)
        case .accepted(let worthStoring):
            if let worthStoring { credentials?.store(worthStoring.credential, for: worthStoring.space) }
            if let proof { bodyProof = proof }
            return nil
        }
    }

    /// Takes a piece of the response's body, as it is transferred.
    func received(_ data: Data) { bodyProof?.update(data) }

    /// Call it when the response's body is complete.
    ///
    /// - Returns: The failure, if the body does not match the claim in the head.
    func receivedEnd() -> LoadFailure? {
        guard let proof = bodyProof.take() else { return nil }
        let confirms = with(proof.isProxy) { $0.confirms(proof.info, bodyHash: proof.finish()) }
        return confirms ? nil : .failedMutualAuthentication(isProxy: proof.isProxy)
    }
}

/// A running hash of a response's body as it is transferred, for the claim in the head (`auth-int`, RFC 7616
/// §3.5).
private final class BodyProof {
    let info: [UInt8]
    let isProxy: Bool
    private var running: DigestHash.RunningHash?

    init(_ info: [UInt8], _ hash: DigestHash, isProxy: Bool) {
        self.info = info
        self.isProxy = isProxy
        running = DigestHash.RunningHash(hash)
    }

    func update(_ data: Data) { running?.update(data.bytes) }

    /// Nil if OpenSSL has failed; then nothing can be checked.
    func finish() -> String? { running.take()?.finish() }
}
