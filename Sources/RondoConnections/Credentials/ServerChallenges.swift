internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex
internal import RondoStreams

/// The challenges of a server, of the proxy before it, and of TLS, shown to the delegate one at a time.
///
/// While the delegate thinks, the response stands unread, and its time is not the server's (rule UC-47). Its decision
/// comes from any thread, by the challenge's sender, and is taken in the next pass.
final class ServerChallenges {
    private enum Kind {
        case http(Authenticator.Inquiry)
        case tls(TLSProtectionSpace.Question, any Exchange)
    }

    /// A challenge that the delegate has not decided about.
    ///
    /// The challenge itself is not kept: its release tells its sender that no decision will come.
    private struct Open {
        let kind: Kind
        let number: Int
        /// The delegate got it by the older method, and is told when it is cancelled.
        var isForOlderMethod = false
    }

    /// What the senders of challenges were told, with the challenge's number.
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
    /// The load; it keeps this object, and releases it when it is over.
    private unowned let owner: any AnswerOwner
    private let dispositions = Dispositions()
    private var open: Open?
    private var count = 0

    /// - Parameter credentials: Where credentials are looked for and kept; nil: nowhere.
    init(for owner: any AnswerOwner, credentials: StoredCredentials?) {
        self.owner = owner
        authenticator = Authenticator(credentials) { [unowned owner] problem in
            owner.received(.step(.unusableCredential(reason: problem)))
        }
    }

    /// The delegate has not decided yet.
    var isWaiting: Bool { open != nil }

    /// The response `head` is a challenge of HTTP.
    func challenged(by head: ResponseHead) { go(authenticator.challenged(by: head)) }

    /// Has the delegate asked about the server of `exchange`, while its connection is secured.
    ///
    /// - Parameters:
    ///   - asksForTrust: No handler of the settings decides about trust.
    ///   - asksForIdentity: No handler of the settings decides about the identity.
    func askAboutTLS(of exchange: any Exchange, asksForTrust: Bool, asksForIdentity: Bool) {
        exchange.askAboutPeer(
            asksForTrust ? { [weak self, weak exchange] in self?.ask(.trust($0), of: exchange) } : nil,
            identity: asksForIdentity
                ? { [weak self, weak exchange] in self?.ask(.identity($0), of: exchange) } : nil)
    }

    private func ask(_ question: TLSProtectionSpace.Question, of exchange: (any Exchange)?) {
        guard let exchange else { return }
        var error: (any Error)?
        if case .trust(let trust) = question, let explanation = trust.explanation {
            error = URLErrors.error(.serverCertificateUntrusted, explanation, url: authenticator.url)
        }
        let challenge = URLAuthenticationChallenge(
            protectionSpace: TLSProtectionSpace(question, host: exchange.key.host, port: exchange.key.port),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: error,
            sender: begin(.tls(question, exchange)))
        owner.received(.challenge(challenge, silent: nil, isTrust: true))
    }

    private func go(_ step: Authenticator.Step) {
        switch step {
        case .sendAgain: owner.received(.hasCredential)
        case .goOnWithout: owner.received(.hasNoCredential)
        case .fail(let failure): owner.received(.failed(failure))
        case .ask(let inquiry):
            let error = inquiry.problem.map {
                URLErrors.error(.userAuthenticationRequired, $0, url: authenticator.url)
            }
            let challenge = URLAuthenticationChallenge(
                protectionSpace: inquiry.space, proposedCredential: inquiry.proposed,
                previousFailureCount: inquiry.failures, failureResponse: inquiry.response, error: error,
                sender: begin(.http(inquiry)))
            owner.received(.challenge(challenge, silent: inquiry.silent, isTrust: false))
        }
    }

    /// - Returns: What takes the decision to the next pass.
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

    /// The delegate's methods have been called with the challenge.
    func handled(_ handling: DelegateCall.ChallengeHandling) {
        switch handling {
        case .taken: break
        case .takenByOlderMethod: open?.isForOlderMethod = true
        case .useSilently, .performDefaultHandling: settle(by: .performDefaultHandling)
        }
        takeDispositions()
    }

    /// Goes on as the sender of the open challenge was told. Decisions about earlier challenges do not count for it.
    func takeDispositions() {
        for (number, disposition) in dispositions.take() where number == open?.number {
            settle(by: disposition)
        }
    }

    /// No decision is wanted any more.
    func close() { open = nil }

    private func settle(by disposition: ChallengeDisposition) {
        guard let settled = open.take() else { return }
        owner.noteProgress()
        if case .cancel(let challenge) = disposition, settled.isForOlderMethod {
            owner.received(.cancelledChallenge(challenge))
        }
        switch settled.kind {
        case .http(let inquiry): go(authenticator.settle(inquiry, by: disposition))
        case .tls(let question, let exchange): settle(question, of: exchange, by: disposition)
        }
    }

    /// A question about which nothing is decided goes by the settings.
    private func settle(
        _ question: TLSProtectionSpace.Question, of exchange: any Exchange,
        by disposition: ChallengeDisposition
    ) {
        do throws(LoadFailure) {
            try question.settle(by: disposition) {
                // Other loads have not agreed to this.
                if !owner.sharesVerdicts { exchange.makePrivate() }
            }
        } catch {
            owner.received(.failed(error))
        }
    }
}
