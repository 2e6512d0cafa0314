internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex
internal import RondoStreams

/// Shows the challenges of a server, of its proxy, and of TLS to the delegate, one at a time.
///
/// While the delegate decides, the response stays unread, and that time does not count against the server
/// (rule UC-47). The decision comes through the challenge's sender, on any thread, and is carried out in the
/// next pass.
final class ServerChallenges {
    private enum Kind {
        case http(Authenticator.Inquiry)
        case tls(TLSProtectionSpace.Question, any Exchange)
    }

    /// The subject of a question of TLS: equal ones get the same answer in one load.
    private enum Subject: Hashable {
        /// The server's own certificate, and what is wrong with it and its chain.
        case trust(ConnectionKey, TLSCertificate?, [CertificateProblem])
        /// The authorities that the server accepts.
        case identity(ConnectionKey, issuers: [Data])

        init(_ question: TLSProtectionSpace.Question, at key: ConnectionKey) {
            switch question {
            case .trust(let trust): self = .trust(key, trust.certificates.first, trust.problems)
            case .identity(let request): self = .identity(key, issuers: request.encodedIssuers)
            }
        }
    }

    /// A challenge that the delegate has not decided about.
    ///
    /// The challenge object itself is not retained: when it is released, its sender knows that no decision
    /// will come.
    private struct Open {
        let kind: Kind
        let number: Int
        /// Whether the delegate got the challenge through the older method, and is told if it is cancelled.
        var isForOlderMethod = false
    }

    /// The decisions that the senders of challenges received, each with its challenge's number.
    private final class Dispositions: Sendable {
        private let waiting = Mutex<[(Int, ChallengeDisposition)]>([])

        func append(_ disposition: ChallengeDisposition, of number: Int) {
            waiting.withLock { $0.append((number, disposition)) }
        }

        func take() -> [(Int, ChallengeDisposition)] {
            waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
        }
    }

    let authenticator: Authenticator
    /// The load's driver; `ServerAnswer` owns this object and releases it when the load is over.
    private unowned let owner: any AnswerOwner
    private let dispositions = Dispositions()
    private var open: Open?
    private var count = 0
    /// The decisions that have granted a connection more than the default. The load's next request may need a
    /// new connection to the same server, because the first one is private or closed. The earlier decision is
    /// applied to it without asking the delegate.
    private var granted: [Subject: ChallengeDisposition] = [:]

    /// - Parameter credentials: The storage for credentials; nil for none.
    init(for owner: any AnswerOwner, credentials: StoredCredentials?) {
        self.owner = owner
        authenticator = Authenticator(credentials) { [unowned owner] problem in
            owner.received(.step(.unusableCredential(reason: problem)))
        }
    }

    /// Whether the delegate has not decided yet.
    var isWaiting: Bool { open != nil }

    /// Handles the HTTP challenge in the response `head`.
    func challenged(by head: ResponseHead) { perform(authenticator.challenged(by: head)) }

    /// Makes `exchange` ask the delegate about the server while its connection is being secured.
    ///
    /// - Parameters:
    ///   - asksForTrust: Whether no handler of the settings decides about trust.
    ///   - asksForIdentity: Whether no handler of the settings decides about the identity.
    func askAboutTLS(of exchange: any Exchange, asksForTrust: Bool, asksForIdentity: Bool) {
        exchange.askAboutPeer(
            asksForTrust ? { [weak self, weak exchange] in self?.ask(.trust($0), of: exchange) } : nil,
            identity: asksForIdentity
                ? { [weak self, weak exchange] in self?.ask(.identity($0), of: exchange) } : nil)
    }

    private func ask(_ question: TLSProtectionSpace.Question, of exchange: (any Exchange)?) {
        guard let exchange else { return }
        if let disposition = granted[Subject(question, at: exchange.key)] {
            return apply(disposition, to: question, of: exchange)
        }
        let challenge = question.challenge(
            host: exchange.key.host, port: exchange.key.port, url: authenticator.url,
            sender: begin(.tls(question, exchange)))
        owner.received(.challenge(challenge, silent: nil, isOfTLS: true))
    }

    private func perform(_ step: Authenticator.Step) {
        switch step {
        case .useCredential: owner.received(.hasCredential)
        case .continueWithout: owner.received(.hasNoCredential)
        case .fail(let failure): owner.received(.failed(failure))
        case .ask(let inquiry):
            let error = inquiry.problem.map {
                URLErrors.error(.userAuthenticationRequired, $0, url: authenticator.url)
            }
            let challenge = URLAuthenticationChallenge(
                protectionSpace: inquiry.space, proposedCredential: inquiry.proposed,
                previousFailureCount: inquiry.failures, failureResponse: inquiry.response, error: error,
                sender: begin(.http(inquiry)))
            owner.received(.challenge(challenge, silent: inquiry.silent, isOfTLS: false))
        }
    }

    /// - Returns: The sender, which passes the decision on to the next pass.
    private func begin(_ kind: Kind) -> ChallengeSender {
        count += 1
        open = Open(kind: kind, number: count)
        return ChallengeSender { [weak owner, dispositions, number = count] disposition in
            guard let owner else { return }
            dispositions.append(disposition, of: number)
            owner.wakeUp()
        }
    }

    // MARK: - Decisions

    /// Notes that the delegate's methods have been called with the challenge.
    func handled(_ handling: DelegateCall.ChallengeHandling) {
        switch handling {
        case .taken: break
        case .takenByOlderMethod: open?.isForOlderMethod = true
        case .useSilently, .performDefaultHandling: decide(.performDefaultHandling)
        }
        takeDispositions()
    }

    /// Carries out the decision about the open challenge. Decisions about earlier challenges are dropped.
    func takeDispositions() {
        for (number, disposition) in dispositions.take() where number == open?.number {
            decide(disposition)
        }
    }

    /// Drops the open challenge, whose decision is not wanted any more.
    func close() { open = nil }

    private func decide(_ disposition: ChallengeDisposition) {
        guard let decided = open.take() else { return }
        owner.received(.decided)
        if case .cancel(let challenge) = disposition, decided.isForOlderMethod {
            owner.received(.cancelledChallenge(challenge))
        }
        switch decided.kind {
        case .http(let inquiry): perform(authenticator.answer(inquiry, by: disposition))
        case .tls(let question, let exchange): apply(disposition, to: question, of: exchange)
        }
    }

    /// Answers a question of TLS; without a decision the settings answer it.
    private func apply(
        _ disposition: ChallengeDisposition, to question: TLSProtectionSpace.Question,
        of exchange: any Exchange
    ) {
        do throws(LoadFailure) {
            try question.apply(disposition) {
                granted[Subject(question, at: exchange.key)] = disposition
                // The delegates of other loads have not accepted this server.
                if !owner.sharesTrustDecisions { exchange.makePrivate() }
            }
        } catch {
            owner.received(.failed(error))
        }
    }
}
