package import FoundationNetworking
internal import RondoCore
internal import RondoMutex
package import RondoStreams

/// A question of a TLS handshake that belongs to no load, as a challenge for a delegate.
///
/// Used in passes of the connection's loop only; the challenge's sender may be used on any thread.
package final class TLSInquiry {
    /// The decision that the challenge's sender received; the sender may outlive the inquiry.
    private final class Decision: Sendable {
        let disposition = Mutex<ChallengeDisposition?>(nil)
    }

    private let question: TLSProtectionSpace.Question
    private let decision = Decision()
    /// The challenge until the delegate takes it. It is not retained afterwards: when it is released, its
    /// sender knows that no decision will come.
    private var unshown: URLAuthenticationChallenge?

    /// - Parameter wakeUp: Called on any thread when there is a decision.
    package convenience init(
        _ trust: TLSTrust, host: String, port: Int, wakeUp: @escaping @Sendable () -> Void
    ) {
        self.init(asking: .trust(trust), host: host, port: port, wakeUp: wakeUp)
    }

    package convenience init(
        _ request: TLSIdentityRequest, host: String, port: Int, wakeUp: @escaping @Sendable () -> Void
    ) {
        self.init(asking: .identity(request), host: host, port: port, wakeUp: wakeUp)
    }

    private init(
        asking question: TLSProtectionSpace.Question, host: String, port: Int,
        wakeUp: @escaping @Sendable () -> Void
    ) {
        self.question = question
        unshown = question.challenge(
            host: host, port: port, url: nil,
            sender: ChallengeSender { [decision] disposition in
                decision.disposition.withLock { $0 = disposition }
                wakeUp()
            })
    }

    /// The challenge for the delegate; nil from the second call on.
    package func takeChallenge() -> URLAuthenticationChallenge? { unshown.take() }

    /// Continues the handshake, if there is a decision.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: If the delegate wants the connection to end.
    package func continueHandshake() throws(LoadFailure) -> Bool {
        guard let disposition = decision.disposition.withLock({ $0.take() }) else { return false }
        try question.apply(disposition)
        return true
    }
}

extension TLSProtectionSpace.Question {
    /// The challenge that asks a delegate this question.
    ///
    /// - Parameter url: The URL of the load, which the error names; nil if the question belongs to no load.
    func challenge(
        host: String, port: Int, url: URL?, sender: ChallengeSender
    ) -> URLAuthenticationChallenge {
        var error: (any Error)?
        if case .trust(let trust) = self, let explanation = trust.explanation {
            error = URLErrors.error(.serverCertificateUntrusted, explanation, url: url)
        }
        return URLAuthenticationChallenge(
            protectionSpace: TLSProtectionSpace(self, host: host, port: port), proposedCredential: nil,
            previousFailureCount: 0, failureResponse: nil, error: error, sender: sender)
    }

    /// Continues the handshake as the delegate has decided about the challenge.
    ///
    /// - Parameter granting: Called before the connection is granted more than the default: trust, or an
    ///   identity.
    /// - Throws: If the delegate wants the connection to end.
    func apply(_ disposition: ChallengeDisposition, granting: () -> Void = {}) throws(LoadFailure) {
        switch (disposition, self) {
        case (.use(let credential), .trust(let trust)):
            // A delegate may answer any challenge with a name and a password, which is no decision about this
            // server.
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
