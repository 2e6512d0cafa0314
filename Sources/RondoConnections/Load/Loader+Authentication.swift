internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

// A challenge from the response that it came with to the credential that answers it, or to nobody's knowing
// one. While the delegate thinks, the response stands unread, and its time is not the server's (rule UC-47).

/// A challenge that waits for its answer.
final class OpenChallenge {
    enum Kind {
        case http(Authentication.Question, isProxy: Bool)
        case tls(TLSProtectionSpace.Question)
    }

    let kind: Kind
    /// Answers to challenges before it are no answers to this one.
    let number: Int
    /// The delegate got it by the older method, and is told when it is cancelled. (The challenge itself is
    /// not kept: its end is how its sender learns that nobody will answer.)
    var isForOlderMethod = false

    init(kind: Kind, number: Int) {
        self.kind = kind
        self.number = number
    }
}

extension Loader {
    /// The response `head` asks who asks.
    func authenticate(_ head: ResponseHead) {
        let isProxy = head.status == 407
        exchange?.pause()
        let rare = madeRare
        if isProxy { rare.hasProxyCredentialFailed = true }
        let values = head.fields.values(for: isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
        let step = withAuthentication(isProxy) { authentication in
            authentication.challenged(
                by: values, makeSpace: { protectionSpace($0, $1, isProxy: isProxy) },
                candidates: { candidates(for: $0, isProxy: isProxy) })
        }
        rare.failureHead = head
        go(step, isProxy: isProxy)
    }

    private func withAuthentication<Result>(
        _ isProxy: Bool, _ body: (inout Authentication) -> Result
    ) -> Result {
        let rare = madeRare
        return isProxy ? body(&rare.proxyAuthentication) : body(&rare.serverAuthentication)
    }

    private func go(_ step: Authentication.Step, isProxy: Bool) {
        switch step {
        case .repeatAnswer: perform(state.authenticated())
        case .giveUp: continueWithoutCredential()
        case .ask(let question): ask(question, isProxy: isProxy)
        }
    }

    private func ask(_ question: Authentication.Question, isProxy: Bool) {
        let number = open(.http(question, isProxy: isProxy))
        let response = rare?.failureHead.flatMap { head in
            state.url.flatMap { LoadedResponse(url: $0, head: head, bodyLength: nil) }
        }
        let problem = withAuthentication(isProxy) { $0.takeProblem() }
        let error = problem.map { URLErrors.error(.userAuthenticationRequired, $0, url: state.url) }
        let challenge = URLAuthenticationChallenge(
            protectionSpace: question.space, proposedCredential: question.proposed,
            previousFailureCount: question.failures, failureResponse: response, error: error,
            sender: sender(number: number))
        deliver(.challenge(challenge, silent: question.silent?.credential, isTrust: false))
    }

    /// - Returns: The challenge's number.
    func open(_ kind: OpenChallenge.Kind) -> Int {
        let rare = madeRare
        rare.challengeCount += 1
        rare.openChallenge = OpenChallenge(kind: kind, number: rare.challengeCount)
        return rare.challengeCount
    }

    /// Takes the answer to a challenge to the next turn.
    func sender(number: Int) -> ChallengeSender {
        ChallengeSender { [weak self] response in
            guard let self else { return }
            shared.withLock { $0.challengeResponses.append((number, response)) }
            wakeUp()
        }
    }

    /// What the delegate's method has made of the challenge.
    func answeredChallenge(_ answer: DelegateCall.ChallengeAnswer) {
        if answeredProtocolChallenge(answer) { return }
        switch answer {
        case .taken: break
        case .takenByOlderMethod: openChallenge?.isForOlderMethod = true
        case .useSilently, .performDefaultHandling: respond(.performDefaultHandling)
        }
        takeChallengeResponses()
    }

    /// What the sender of the open challenge was told meanwhile.
    func takeChallengeResponses() {
        let responses = shared.withLock { shared in
            defer { shared.challengeResponses = [] }
            return shared.challengeResponses
        }
        for (number, response) in responses where number == openChallenge?.number { respond(response) }
    }

    private func respond(_ response: ChallengeResponse) {
        guard let open = openChallenge else { return }
        rare?.openChallenge = nil
        progressedAt = now
        if case .cancel(let challenge) = response, open.isForOlderMethod { deliver(.didCancel(challenge)) }
        switch open.kind {
        case .tls(let question): respond(response, to: question)
        case .http(let question, let isProxy): respond(response, to: question, isProxy: isProxy)
        }
    }

    private func respond(
        _ response: ChallengeResponse, to question: Authentication.Question, isProxy: Bool
    ) {
        switch response {
        case .use(let credential):
            use(credential, from: .delegate, for: question, isProxy: isProxy)
        case .performDefaultHandling:
            guard let silent = question.silent else { return continueWithoutCredential() }
            use(silent.credential, from: silent.origin, for: question, isProxy: isProxy)
        case .continueWithout:
            continueWithoutCredential()
        case .cancel:
            perform(state.failed(.authenticationCancelled))
        case .rejectProtectionSpace:
            let step = withAuthentication(isProxy) { authentication in
                authentication.reject(question)
                return authentication.next(
                    makeSpace: { protectionSpace($0, $1, isProxy: isProxy) },
                    candidates: { candidates(for: $0, isProxy: isProxy) })
            }
            go(step, isProxy: isProxy)
        }
    }

    private func use(
        _ credential: URLCredential, from origin: Authentication.Origin,
        for question: Authentication.Question, isProxy: Bool
    ) {
        let canBeSent = withAuthentication(isProxy) { $0.use(credential, from: origin, for: question) }
        if canBeSent { return perform(state.authenticated()) }
        tellOfProblem(withAuthentication(isProxy) { $0.takeProblem() })
        continueWithoutCredential()
    }

    /// A credential cannot be sent as it is: the load goes on without, and somebody should know why.
    func tellOfProblem(_ problem: String?) {
        guard let problem else { return }
        report(.unusableCredential(reason: problem))
        Log.connections.warning(
            "A credential was not sent to \(state.url?.host ?? "a server"): \(problem)")
    }

    /// The response to the challenge is the result (rule UC-48).
    private func continueWithoutCredential() {
        perform(state.notAuthenticated())
        // The answer to a CONNECT is a head alone; its connection is gone.
        if exchange == nil, bridge == nil, local == nil { perform(state.bodyEnded()) }
    }

    // MARK: - Spaces and credentials

    private func protectionSpace(_ realm: String, _ method: String, isProxy: Bool) -> URLProtectionSpace {
        let url = state.url
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
    ) -> [(URLCredential, Authentication.Origin)] {
        var candidates: [(URLCredential, Authentication.Origin)] = []
        if isProxy {
            // Basic was sent already, without being asked for.
            if let proxy, let user = proxy.userName,
                space.authenticationMethod != NSURLAuthenticationMethodHTTPBasic
            {
                let password = proxy.password ?? ""
                candidates.append(
                    (URLCredential(user: user, password: password, persistence: .none), .url))
            }
        } else if let url = state.url, let credential = Self.credential(of: url) {
            candidates.append((credential, .url))
        }
        if usesCredentialStorage ?? true, let stored = StoredCredentials.defaultCredential(for: space) {
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

    // MARK: - With a request and after a response

    /// The fields that say who asks.
    func setAuthentication(
        method: String, target: String, toProxy sent: String?, in fields: inout HeaderFields,
        bodyHash: (DigestHash) -> String?
    ) {
        guard let rare else { return }
        if !rare.serverAuthentication.isIdle,
            let value = rare.serverAuthentication.fieldValue(
                method: method, target: target, bodyHash: bodyHash)
        {
            fields.set(name: "Authorization", value: value)
        }
        if let sent, let value = proxyAuthorization(method: method, target: sent, bodyHash: bodyHash) {
            fields.set(name: "Proxy-Authorization", value: value)
        }
    }

    /// A response that is no challenge has come.
    ///
    /// - Returns: False if whoever sent it is not who knows the password; the load has failed.
    func isAccepted(_ head: ResponseHead) -> Bool {
        guard let rare else { return true }
        rare.bodyProof = nil
        if head.status != 401, !rare.serverAuthentication.isIdle {
            let info = head.fields.values(for: "Authentication-Info").first
            guard isAccepted(info, isProxy: false) else { return false }
        }
        if head.status != 407, !rare.proxyAuthentication.isIdle {
            let info = head.fields.values(for: "Proxy-Authentication-Info").first
            guard isAccepted(info, isProxy: true) else { return false }
        }
        return true
    }

    private func isAccepted(_ info: String?, isProxy: Bool) -> Bool {
        var proof: BodyProof?
        let acceptance = withAuthentication(isProxy) { authentication in
            authentication.accepted(info: info) { hash in
                if let info { proof = BodyProof(info, hash, isProxy: isProxy) }
            }
        }
        switch acceptance {
        case .refuted:
            perform(state.failed(.impostor(isProxy: isProxy)))
            return false
        case .accepted(let worthStoring):
            store(worthStoring)
            if let proof { rare?.bodyProof = proof }
            return true
        }
    }

    /// The response's body is here: what its head has said of it has to be true.
    ///
    /// - Returns: False if it is not, and the load has failed.
    func isBodyProven() -> Bool {
        guard let rare, let proof = rare.bodyProof, state.deliversBody else { return true }
        rare.bodyProof = nil
        let authentication = proof.isProxy ? rare.proxyAuthentication : rare.serverAuthentication
        if authentication.confirms(proof.info, bodyHash: proof.finish()) { return true }
        perform(state.failed(.impostor(isProxy: proof.isProxy)))
        return false
    }

    private func store(_ accepted: (space: URLProtectionSpace, credential: URLCredential)?) {
        guard let accepted, usesCredentialStorage ?? true else { return }
        StoredCredentials.store(accepted.credential, for: accepted.space)
    }
}

/// The hash of a response's body as it is transferred, for what the head has said of it (`auth-int`, RFC 7616 §3.5).
final class BodyProof {
    let info: String
    let isProxy: Bool
    private var running: DigestHash.RunningHash?

    init(_ info: String, _ hash: DigestHash, isProxy: Bool) {
        self.info = info
        self.isProxy = isProxy
        running = DigestHash.RunningHash(hash)
    }

    func update(_ data: Data) { running?.update(data.bytes) }

    /// Nil where OpenSSL has failed: nothing is proven by that.
    func finish() -> String? { running.take()?.finish() }
}
