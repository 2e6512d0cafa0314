internal import FoundationNetworking
internal import RondoCore
internal import Synchronization

// Loads that no server of ours answers: by a URLProtocol of the program, by a file, by the URL itself. What
// they say is delivered in turns, as what comes from a socket is.

extension Loader {
    // MARK: - URLProtocol

    /// Rule UC-66. A synchronous request's own mode serves nobody's timers but ours, so that its protocol
    /// runs on the loader.
    func startProtocol(_ type: URLProtocol.Type, for request: URLRequest) {
        let isSynchronous = places.contains { $0.mode == .synchronousRequest }
        let kept = caching?.kept
        caching?.kept = nil
        let bridge = ProtocolBridge(
            type, request: request, cached: kept, on: isSynchronous ? RunLoop.loader : nil
        ) { [weak self] in self?.wakeUp() }
        madeRare.bridge = bridge
        hasCalled = true
        bridge.start()
    }

    /// What the protocol has said, as far as the delegate takes it.
    func takeMessages() {
        var mayTake: Bool { !state.isAsking && !holdsBack && mayRead && openProtocolChallenge == nil }
        while mayTake, let bridge, let message = bridge.next() {
            take(message)
            progressedAt = now
        }
    }

    private func take(_ message: ProtocolBridge.Message) {
        switch message {
        case .redirect(let request, let response):
            perform(state.redirected(to: request, by: response))
        case .response(let response, let policy):
            beginStoring(response, policy)
            perform(state.received(response))
        case .data(let data):
            guard state.deliversBody else { break }
            noteContent(data)
            receivedBody(data)
        case .finish:
            bridge?.stop()
            rare?.bridge = nil
            perform(state.deliversBody ? state.bodyEnded() : state.failed(.noResponse))
        case .fail(let error):
            perform(state.failed(.program(error as NSError)))
        case .challenge(let challenge):
            madeRare.openProtocolChallenge = challenge
            deliver(.challenge(challenge, silent: nil, isTrust: false))
        case .cancelledChallenge(let challenge):
            deliver(.didCancel(challenge))
        }
    }

    /// The delegate has seen the challenge of a protocol, which hears the answer itself; where nobody answers
    /// it goes on without a credential.
    ///
    /// - Returns: False if the challenge is none of a protocol.
    func answeredProtocolChallenge(_ answer: DelegateCall.ChallengeAnswer) -> Bool {
        guard let challenge = openProtocolChallenge else { return false }
        rare?.openProtocolChallenge = nil
        switch answer {
        case .taken, .takenByOlderMethod: break
        case .useSilently, .performDefaultHandling:
            challenge.sender?.continueWithoutCredential(for: challenge)
        }
        wakeUp()
        return true
    }

    // MARK: - Files, and URLs that are their own content

    func startLocal(_ url: URL) {
        do throws(LoadFailure) {
            let local = try LocalContent(url)
            madeRare.local = local
            perform(state.received(local.response))
            wakeUp()
        } catch {
            perform(state.failed(error))
        }
    }

    /// A piece of it in a turn: others of the loop want theirs.
    func readLocal() {
        guard let local, state.deliversBody, !holdsBack, mayRead else { return }
        do throws(LoadFailure) {
            guard let data = try local.next() else { return perform(state.bodyEnded()) }
            receivedBody(data)
            progressedAt = now
            wakeUp()
        } catch {
            perform(state.failed(error))
        }
    }

    func disposeOfOthers() {
        guard let rare else { return }
        rare.openProtocolChallenge = nil
        rare.bridge?.stop()
        rare.bridge = nil
        rare.local?.close()
        rare.local = nil
    }
}
