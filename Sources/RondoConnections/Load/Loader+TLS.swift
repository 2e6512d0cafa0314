internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

// Questions of a handshake as challenges. The channel waits for the answer; a question that nobody answers
// answers itself by the settings.

extension Loader {
    /// Has the delegate asked about the server of `exchange`, unless the settings name somebody to ask, or nobody would
    /// answer: a connection that asks takes no earlier session up.
    func askAboutTLS(of exchange: HTTP1Exchange) {
        guard let tls = exchange.key.tls, let delegate, delegate.base != nil,
            !(delegate.kind?.leavesTLSToSettings ?? false)
        else { return }
        exchange.askAboutPeer(
            tls.trustHandler == nil ? { [weak self] in self?.ask(.trust($0)) } : nil,
            identity: tls.identityHandler == nil ? { [weak self] in self?.ask(.identity($0)) } : nil)
    }

    private func ask(_ question: TLSProtectionSpace.Question) {
        guard let key = exchange?.key else { return }
        let number = open(.tls(question))
        var error: (any Error)?
        if case .trust(let trust) = question, let explanation = trust.explanation {
            error = URLErrors.error(.serverCertificateUntrusted, explanation, url: state.url)
        }
        let challenge = URLAuthenticationChallenge(
            protectionSpace: TLSProtectionSpace(question, host: key.host, port: key.port),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: error,
            sender: sender(number: number))
        deliver(.challenge(challenge, silent: nil, isTrust: true))
    }

    /// The answer to a question of TLS.
    func respond(_ response: ChallengeResponse, to question: TLSProtectionSpace.Question) {
        switch (response, question) {
        case (.use(let credential), .trust(let trust)):
            // A name and a password, given to whatever is asked, are no word about this server.
            guard credential.isTrust else { return trust.useDefault() }
            // Another load has not agreed to this.
            if !trust.isTrusted { exchange?.makePrivate() }
            trust.accept()
        case (.use(let credential), .identity(let request)):
            guard let identity = (credential as? TLSCredential)?.identity else { return request.useDefault() }
            exchange?.makePrivate()
            request.use(identity)
        case (.performDefaultHandling, .trust(let trust)), (.continueWithout, .trust(let trust)):
            trust.useDefault()
        case (.performDefaultHandling, .identity(let request)): request.useDefault()
        case (.continueWithout, .identity(let request)), (.rejectProtectionSpace, .identity(let request)):
            request.useNone()
        case (.rejectProtectionSpace, .trust(let trust)): trust.reject()
        case (.cancel, _):
            perform(state.failed(.authenticationCancelled))
        }
    }
}
