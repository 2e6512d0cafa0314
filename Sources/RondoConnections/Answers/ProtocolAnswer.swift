internal import FoundationNetworking
internal import RondoCore

/// The answer of a `URLProtocol` of the program (rule UC-66).
///
/// The protocol's messages are delivered in passes of the load's modes, like bytes from a socket.
final class ProtocolAnswer: Answer {
    private let type: URLProtocol.Type
    /// A stored response; the protocol decides whether it is valid.
    private var cached: CachedURLResponse?
    private let loop: RunLoop?
    private let modes: [LoopMode]
    /// Nil before the start, and after `cancel()` or the protocol's end.
    private var bridge: ProtocolBridge?
    /// An open challenge of the protocol, which is itself the challenge's sender.
    private var challenge: URLAuthenticationChallenge?
    /// Whether the protocol waits for the answer to its challenge: since it was the protocol's last message.
    /// The answer goes to the protocol's own sender, and is not seen here.
    private var awaitsCredential = false
    private unowned let owner: any AnswerOwner

    /// - Parameters:
    ///   - loop: The loop on which the protocol runs; nil for the one that serves the load.
    ///   - modes: The modes in which the protocol may be called.
    init(
        of type: URLProtocol.Type, cached: CachedURLResponse?, on loop: RunLoop?, modes: [LoopMode],
        for owner: any AnswerOwner
    ) {
        (self.type, self.cached, self.loop, self.modes, self.owner) = (type, cached, loop, modes, owner)
    }

    func start(_ asked: AnswerRequest) {
        let bridge = ProtocolBridge(
            type, request: asked.request.value, cached: cached.take(), on: loop, modes: modes
        ) { [weak owner] in owner?.wakeUp() }
        self.bridge = bridge
        owner.noteCall()
        bridge.start()
    }

    /// Delivers the protocol's messages, as long as the load takes more.
    func serve() {
        while challenge == nil, owner.mayRead, let bridge, let message = bridge.next() {
            handle(message, from: bridge)
        }
    }

    private func handle(_ message: ProtocolBridge.Message, from bridge: ProtocolBridge) {
        awaitsCredential = if case .challenge = message { true } else { false }
        switch message {
        case .redirect(let request, let response): owner.received(.redirect(request, response))
        case .response(let response, let policy): owner.received(.response(response, policy))
        case .data(let data): owner.received(.content(data))
        case .finish:
            bridge.stop()
            self.bridge = nil
            owner.received(.end)
        case .fail(let error): owner.received(.failed(.program(ProgramError(value: error))))
        case .challenge(let challenge):
            self.challenge = challenge
            owner.received(.challenge(challenge, silent: nil, isOfTLS: false))
        case .cancelledChallenge(let challenge): owner.received(.cancelledChallenge(challenge))
        }
    }

    /// If the delegate does not handle the challenge, the protocol continues without a credential.
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling) {
        guard let challenge = challenge.take() else { return }
        switch handling {
        case .taken, .takenByOlderMethod: break
        case .useSilently, .performDefaultHandling:
            awaitsCredential = false
            // Idle time counts from here on.
            owner.received(.progress)
            challenge.sender?.continueWithoutCredential(for: challenge)
        }
        owner.wakeUp()
    }

    func cancel() {
        challenge = nil
        awaitsCredential = false
        bridge.take()?.stop()
    }

    var waitsLocally: Bool { awaitsCredential }
}
