package import FoundationNetworking
internal import RondoCore
internal import RondoMutex
package import RondoStreams

/// A question of a TLS handshake that belongs to no load, as a challenge for a delegate.
///
/// Made, and asked how it was decided, in passes of the connection's loop; the challenge's sender is used on any thread.
package final class TLSInquiry {
    /// What the challenge's sender was told; it may outlive the inquiry.
    private final class Decision: Sendable {
        let disposition = Mutex<ChallengeDisposition?>(nil)
    }

    private let question: TLSProtectionSpace.Question
    private let decision = Decision()
    /// The delegate's. It is not kept: its release tells its sender that no decision will come.
    private var unshown: URLAuthenticationChallenge?

    /// - Parameter wakeUp: Called, on any thread, when it is decided.
    package init(
        _ trust: TLSTrust, host: String, port: Int, wakeUp: @escaping @Sendable () -> Void
    ) {
        question = .trust(trust)
        let error = trust.explanation.map { URLErrors.error(.serverCertificateUntrusted, $0, url: nil) }
        show(host, port, error, wakeUp)
    }

    package init(
        _ request: TLSIdentityRequest, host: String, port: Int, wakeUp: @escaping @Sendable () -> Void
    ) {
        question = .identity(request)
        show(host, port, nil, wakeUp)
    }

    private func show(
        _ host: String, _ port: Int, _ error: (any Error)?, _ wakeUp: @escaping @Sendable () -> Void
    ) {
        unshown = URLAuthenticationChallenge(
            protectionSpace: TLSProtectionSpace(question, host: host, port: port), proposedCredential: nil,
            previousFailureCount: 0, failureResponse: nil, error: error,
            sender: ChallengeSender { [decision] disposition in
                decision.disposition.withLock { $0 = disposition }
                wakeUp()
            })
    }

    /// The challenge, for the delegate; once.
    package func takeChallenge() -> URLAuthenticationChallenge? { unshown.take() }

    /// Goes on with the handshake, if it is decided.
    ///
    /// - Returns: Whether it was.
    /// - Throws: The delegate wants the connection to end.
    package func goOn() throws(LoadFailure) -> Bool {
        guard let disposition = decision.disposition.withLock({ $0.take() }) else { return false }
        try question.settle(by: disposition)
        return true
    }
}

extension TLSProtectionSpace.Question {
    /// Goes on with the handshake as the delegate has decided about the challenge.
    ///
    /// - Parameter granting: Called before the connection gets what it would not get by default: trust, or an identity.
    /// - Throws: The delegate wants the connection to end.
    func settle(by disposition: ChallengeDisposition, granting: () -> Void = {}) throws(LoadFailure) {
        switch (disposition, self) {
        case (.use(let credential), .trust(let trust)):
            // A name and a password, given to whatever is asked, are no word about this server.
            guard credential.isTrust else { return trust.useDefault() }
            if !trust.isTrusted { granting() }
            trust.accept()
        case (.use(let credential), .identity(let request)):
            guard let identity = (credential as? TLSCredential)?.identity else { return request.useDefault() }
            granting()
            request.use(identity)
        case (.performDefaultHandling, .trust(let trust)), (.continueWithout, .trust(let trust)):
            trust.useDefault()
        case (.performDefaultHandling, .identity(let request)): request.useDefault()
        case (.continueWithout, .identity(let request)), (.rejectProtectionSpace, .identity(let request)):
            request.useNone()
        case (.rejectProtectionSpace, .trust(let trust)): trust.reject()
        case (.cancel, _): throw .authenticationCancelled
        }
    }
}
