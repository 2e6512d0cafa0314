internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The state machine of a load, from its request to its end: inputs in, actions out. It knows no socket, no
/// loop and no delegate.
///
/// An input is a `mutating` method that says what has happened; it returns the action that follows, or
/// nothing if it only moves the load to another phase. Questions have no effect.
///
///     created ─▶ askingAboutStorage ─▶ askingAboutCanonical ─▶ answering ─▶ receiving ─▶ …
///
/// `answering` and `askingForRest` step aside to `waitingForCookies` while cookies cannot be read, and come
/// back.
///
///     answering ─ redirect ──▶ askingAboutRedirect ─ request ─▶ answering
///               │                                  └ nil ─────▶ receiving
///               ├ 401, 407 ──▶ challenged ─ credential ───────▶ answering
///               │                         └ none ─────────────▶ receiving
///               └ no network ▶ waitingForConnectivity ─ again ▶ answering
///
///     answering ─ failure, but a stale response ▶ answering
///     answering ─ response of a task ▶ askingAboutResponse ─ decision ▶ receiving
///     receiving ─ connection lost ▶ askingForRest ─ rest ▶ receiving
///     receiving ─ 101 ▶ upgraded
///
///     … receiving ─ end ─▶ storing ─▶ ended
///     storing ─ delegate is asked ─▶ askingAboutCaching ─ reply ─▶ storing
///     any phase ─ the client's abort ▶ aborted ─ the client was told ▶ ended
///
/// A phase with nothing to wait for is left at once. A failure ends the load in any phase; an ended load
/// ignores inputs and returns no actions. (Waits inside an answer, such as that for a connection, are states
/// of `ServerAnswer`.)
struct LoadState {
    private enum Phase {
        /// The load has had no pass. The value is the failure with which it ends there, because its request
        /// cannot be sent.
        case created(LoadFailure?)
        /// The delegate was asked whether the credential storage may be used (rule UC-43).
        case askingAboutStorage
        /// The delegate was shown the canonical request; nothing has been sent.
        case askingAboutCanonical(URLRequest)
        /// The request goes out once its cookies can be read.
        case waitingForCookies(LoadRequest, SendReason)
        /// An answer is working on the request, and no response has come.
        case answering
        /// There is no network: the request goes out again when there may be one (rule US-70).
        case waitingForConnectivity(ConnectivityWait)
        /// The delegate was shown a redirect, whose own response is kept in case the delegate refuses.
        case askingAboutRedirect(IncomingResponse)
        /// The server, or a proxy, wants a credential; its own response is kept in case there is none.
        case challenged(IncomingResponse)
        /// The client was shown a response, and decides what to do with its body.
        case askingAboutResponse
        case receiving
        /// The connection was lost in the middle of a download, whose rest was requested.
        // Indirect, as in `SendReason`: every load has the size of the largest case.
        indirect case askingForRest(RequestedRest)
        /// The connection carries another protocol. The exchange, which hands the connection over, has the
        /// `Upgrade`.
        case upgraded
        /// All content is here, and the delegate was shown the response that is to be stored (rule UC-54).
        case askingAboutCaching
        /// All content is here, and other threads are storing it. `LoadInbox` counts what is being stored:
        /// that begins while content still comes, as with cookies, and ends on those threads.
        case storing
        /// The client has ended the load and was not told of the end yet. The value is the partial file of a
        /// download.
        case aborted(PartialDownload?)
        case ended
    }

    enum Action: Equatable {
        case nothing
        /// Ask the delegate whether the credential storage may be used, and call `repliedAboutStorage()`.
        case askAboutStorage
        /// Ask the delegate whether `request` may be sent.
        case ask(URLRequest, redirect: IncomingResponse?)
        /// Send a request. Nothing else makes a load send one.
        case send(LoadRequest, SendReason)
        /// Begin the answer to a request that `.send` has named, and whose cookies can be read by now.
        case answer(LoadRequest, SendReason)
        /// Answer with a stored response, in place of the answer that has failed.
        case useStored(URLResponse, Data)
        /// Say that there is no network; the first time, tell the client as well.
        case waitForNetwork(isFirst: Bool)
        /// Go on with the file of a download, which has `total` bytes: the rest of it follows.
        case continueFile(total: Int64)
        /// Find a credential, and call `authenticated()` or `notAuthenticated()`.
        case authenticate(ResponseHead)
        /// Tell the delegate of the response; its content follows.
        case deliver(IncomingResponse)
        /// All content has come: store it, and tell the delegate of the end.
        case finish
        case fail(LoadFailure)
    }

    private var phase: Phase
    /// The redirects that the delegate was asked about.
    private var redirectsProposed = 0
    /// The redirects that were followed.
    private(set) var redirectsFollowed = 0
    /// Whether the delegate allows the use of stored credentials (rule UC-43).
    private(set) var usesCredentialStorage = true
    /// Whether the client was told that the load waits for a network; it is told at most once.
    private var hasToldOfConnectivity = false
    private(set) var request: LoadRequest

    /// The protocols of the program that may load its requests.
    private let protocols: ProtocolClasses
    private let policy: RedirectSettings
    /// Hosts that only loads with these settings know.
    private let hosts: OwnHSTSHosts?
    /// Redirects to ws and wss are followed as such to http and https (rule WS-3).
    private let isWebSocket: Bool

    init(
        _ request: LoadRequest, protocols: ProtocolClasses = .registered,
        redirects policy: RedirectSettings = .init(), isWebSocket: Bool = false,
        hosts: OwnHSTSHosts? = nil, failing failure: LoadFailure? = nil
    ) {
        phase = .created(failure)
        self.isWebSocket = isWebSocket
        self.hosts = hosts
        self.policy = policy
        self.request = request
        self.protocols = protocols
    }

    var url: URL? { request.url }

    /// What phases have in common; a phase may have several of these traits, or none.
    private struct Traits: OptionSet {
        let rawValue: UInt8

        static let readsAnswer = Traits(rawValue: 1)
        static let ignoresAnswer = Traits(rawValue: 2)
        static let isAsking = Traits(rawValue: 4)
        static let waitsLocally = Traits(rawValue: 8)
    }

    private var traits: Traits {
        switch phase {
        case .created, .challenged: []
        case .askingAboutStorage, .waitingForCookies, .waitingForConnectivity: .waitsLocally
        case .askingAboutCanonical, .askingAboutRedirect, .askingAboutResponse: [.isAsking, .waitsLocally]
        case .answering, .receiving, .askingForRest, .upgraded: .readsAnswer
        case .askingAboutCaching: [.ignoresAnswer, .waitsLocally]
        case .storing, .aborted, .ended: .ignoresAnswer
        }
    }

    /// Whether the answer is read: no reply of the delegate is awaited.
    var readsAnswer: Bool { traits.contains(.readsAnswer) }

    /// Whether further events of the answer are ignored. The delegate may not have been told of the end yet.
    var ignoresAnswer: Bool { traits.contains(.ignoresAnswer) }

    /// Whether the delegate was asked about a request or a response, and has not replied yet.
    var isAsking: Bool { traits.contains(.isAsking) }

    /// Whether the load waits for something on this machine and not for the sender of the response.
    var waitsLocally: Bool { traits.contains(.waitsLocally) }

    /// Whether the content is complete, and the delegate was asked about the response that is to be stored.
    var isAskingAboutCaching: Bool { if case .askingAboutCaching = phase { true } else { false } }

    /// Whether limits of time count.
    var isTimed: Bool { !ignoresAnswer || isAskingAboutCaching }

    var hasStarted: Bool { if case .created = phase { false } else { true } }

    /// Whether the load ends in its first pass, which has not come yet.
    var failsAtOnce: Bool { if case .created(.some) = phase { true } else { false } }

    /// Whether content that comes now is delivered to the delegate.
    var deliversBody: Bool { if case .receiving = phase { true } else { false } }

    var isUpgraded: Bool { if case .upgraded = phase { true } else { false } }

    /// The response was the answer to an upgrade.
    mutating func upgraded() { if case .receiving = phase { phase = .upgraded } }

    /// The first pass of the load has come.
    ///
    /// - Parameter asksAboutStorage: False if the delegate is known not to implement the method.
    mutating func started(asksAboutStorage: Bool = false) -> Action {
        guard case .created(let failure) = phase else { return .nothing }
        if let failure { return fail(failure) }
        phase = .askingAboutStorage
        return asksAboutStorage ? .askAboutStorage : repliedAboutStorage()
    }

    /// The delegate's reply to `.askAboutStorage`.
    mutating func repliedAboutStorage(_ uses: Bool = true) -> Action {
        guard case .askingAboutStorage = phase else { return .nothing }
        usesCredentialStorage = uses
        if CanonicalRequest.isSent(asIs: request, by: protocols, hosts) {
            phase = .answering
            return .send(request, .first)
        }
        guard let canonical = CanonicalRequest.of(request.value, by: protocols, hosts) else {
            return fail(.unsupportedURL)
        }
        // `==` does not look at the fields.
        let isSame =
            canonical == request.value && canonical.allHTTPHeaderFields == request.value.allHTTPHeaderFields
        guard !isSame else {
            phase = .answering
            return .send(request, .first)
        }
        phase = .askingAboutCanonical(canonical)
        return .ask(canonical, redirect: nil)
    }

    /// The cookies of a request that is being sent cannot be read yet.
    mutating func cookiesDelayed(for request: LoadRequest, _ reason: SendReason) {
        if isAnswering || isAskingForRest { phase = .waitingForCookies(request, reason) }
    }

    /// Cookies can be read.
    mutating func cookiesRead() -> Action {
        guard case .waitingForCookies(let request, let reason) = phase else { return .nothing }
        phase = if case .rest(let rest) = reason { .askingForRest(rest) } else { .answering }
        return .answer(request, reason)
    }

    /// Whether a request was sent and no response has come.
    var isAnswering: Bool { if case .answering = phase { true } else { false } }

    /// Whether the rest of a download was requested and no response has come.
    var isAskingForRest: Bool { if case .askingForRest = phase { true } else { false } }

    /// The wait for a network is over. This may come more than once.
    mutating func networkMayBeBack() -> Action {
        guard case .waitingForConnectivity = phase else { return .nothing }
        phase = .answering
        return .send(request, .network)
    }

    /// A stored response, which was to be confirmed, does not fit the server's head.
    mutating func storedResponseRejected() -> Action {
        isAnswering ? .send(request, .withoutConditions) : .nothing
    }

    /// The delegate's reply to `.ask`: the request to send; nil for none.
    mutating func replied(_ reply: URLRequest?) -> Action {
        switch phase {
        case .askingAboutCanonical(let canonical):
            guard let reply else { return fail(.canonicalRequestRefused) }
            // The canonical form is computed once: a protocol of the program may change its own result again.
            // (Requests that differ only in fields or body are equal, so that the delegate's request is
            // sent.)
            return reply == canonical ? send(reply, .first) : follow(reply, .first)
        case .askingAboutRedirect(let response):
            guard let reply else {
                phase = .receiving
                return .deliver(response)
            }
            redirectsFollowed += 1
            return follow(reply, .redirect)
        case .created, .askingAboutStorage, .waitingForCookies, .answering, .waitingForConnectivity,
            .challenged, .askingAboutResponse, .receiving, .askingForRest, .upgraded, .askingAboutCaching,
            .storing, .aborted,
            .ended:
            return .nothing
        }
    }

    var isAskingAboutResponse: Bool { if case .askingAboutResponse = phase { true } else { false } }

    /// The client is asked about the response that it is shown.
    mutating func askedAboutResponse() { if case .receiving = phase { phase = .askingAboutResponse } }

    /// The client's reply: the body is delivered.
    mutating func repliedAboutResponse() { if isAskingAboutResponse { phase = .receiving } }

    /// There is a credential: the request is sent again.
    mutating func authenticated() -> Action {
        guard case .challenged = phase else { return .nothing }
        phase = .answering
        return .send(request, .credential)
    }

    /// There is no credential: the response to the challenge is the result (rule UC-48).
    mutating func notAuthenticated() -> Action {
        guard case .challenged(let response) = phase else { return .nothing }
        phase = .receiving
        return .deliver(response)
    }

    private mutating func follow(_ chosen: URLRequest, _ reason: SendReason) -> Action {
        guard let next = CanonicalRequest.of(chosen, by: protocols, hosts) else {
            return fail(.unsupportedURL)
        }
        return send(next, reason)
    }

    private mutating func send(_ next: URLRequest, _ reason: SendReason) -> Action {
        request = LoadRequest(next)
        phase = .answering
        return .send(request, reason)
    }

    /// The head of a final response: decides whether it is a redirect, a challenge, or the response for the
    /// delegate.
    ///
    /// - Parameters:
    ///   - hadExpectation: The request has asked for the server's go-ahead.
    ///   - isFromProxy: Whether a proxy may have made it. A 407 by a server is not answered with a
    ///     credential.
    ///   - isHeadAlone: Whether it is the response to a CONNECT.
    mutating func receivedHead(
        _ head: ResponseHead, bodyLength: Int64?, hadExpectation: Bool = false, isFromProxy: Bool = true,
        isHeadAlone: Bool = false
    ) -> Action {
        guard case .answering = phase else { return .nothing }
        if head.status == 417, hadExpectation {
            // The server does not support the go-ahead: send the request without it (RFC 9110 §15.5.18). The
            // body may be on its way by now, because the go-ahead did not come in time.
            request = request.withoutExpectation
            return .send(request, .withoutExpectation)
        }
        let response = isHeadAlone ? IncomingResponse.headAlone(head) : .http(head, bodyLength: bodyLength)
        if Self.isChallenge(head), head.status != 407 || isFromProxy {
            phase = .challenged(response)
            return .authenticate(head)
        }
        if policy.follows, Redirect.isRedirect(head.status), let url {
            return receivedRedirect(head, of: response, from: url)
        }
        phase = .receiving
        return .deliver(response)
    }

    /// Decides where a redirect leads to, and proposes that to the delegate.
    private mutating func receivedRedirect(
        _ head: ResponseHead, of response: IncomingResponse, from url: URL
    ) -> Action {
        let decision = Redirect.decide(
            status: head.status, location: location(in: head), method: request.method, currentURL: url)
        switch decision {
        case .notARedirect:
            phase = .receiving
            return .deliver(response)
        case .missingLocation:
            return fail(.redirectWithoutLocation(status: head.status))
        case .unsupported(let target):
            return fail(.unsupportedRedirect(target))
        case .to(let target, let method, let keepsBody, let sameOrigin):
            let next = RedirectedRequest.from(
                request.value, to: target, method: method, keepsBody: keepsBody, sameOrigin: sameOrigin)
            return proposeRedirect(to: next, by: response)
        }
    }

    private func location(in head: ResponseHead) -> String? {
        let location = head.fields.agreed("Location", as: HeaderFields.reference)
        guard let location, isWebSocket else { return location }
        let start = location.prefix(6).lowercased()
        // The schemes ws and wss stand for http and https.
        return start.hasPrefix("ws://") || start == "wss://" ? "http" + location.dropFirst(2) : location
    }

    /// The head of a response that is a part which cannot be used: the whole file is requested.
    mutating func receivedUselessPart() -> Action {
        guard case .answering = phase else { return .nothing }
        request = request.forWhole
        return .send(request, .wholeFile)
    }

    /// The head of the response to the request for the rest of a download.
    mutating func receivedHeadOfRest(_ head: ResponseHead, bodyLength: Int64?) -> Action {
        guard case .askingForRest(let rest) = phase else { return .nothing }
        guard let total = rest.total(with: head, bodyLength: bodyLength, from: url) else {
            return fail(rest.failure)
        }
        phase = .receiving
        return .continueFile(total: total)
    }

    /// Proposes to the delegate to send `next`, unless there were too many redirects.
    private mutating func proposeRedirect(to next: URLRequest, by response: IncomingResponse) -> Action {
        guard redirectsProposed < policy.maximum else {
            return fail(.tooManyRedirects(max(policy.maximum, 0)))
        }
        redirectsProposed += 1
        phase = .askingAboutRedirect(response)
        return .ask(next, redirect: response)
    }

    /// A protocol of the program reports a redirect.
    mutating func protocolRedirected(to next: URLRequest, by response: URLResponse) -> Action {
        guard case .answering = phase else { return .nothing }
        return proposeRedirect(to: next, by: .other(response))
    }

    /// A response that is not HTTP, or that a protocol of the program has made; there may be several.
    mutating func received(_ response: URLResponse) -> Action {
        switch phase {
        case .answering, .receiving:
            phase = .receiving
            return .deliver(.other(response))
        case .created, .askingAboutStorage, .askingAboutCanonical, .waitingForCookies,
            .waitingForConnectivity, .askingAboutRedirect, .challenged, .askingAboutResponse, .askingForRest,
            .upgraded, .askingAboutCaching, .storing, .aborted, .ended:
            return .nothing
        }
    }

    /// The head of a part of a multipart: each part has its own response (rule UC-22).
    mutating func receivedPart(_ head: ResponseHead) -> Action {
        guard let url, let response = LoadedResponse(url: url, head: head, bodyLength: nil) else {
            return failed(.unusableResponse(status: head.status))
        }
        return received(response)
    }

    /// Whether the response is a challenge that can be answered: it has the field that names the schemes
    /// (rule UC-52).
    private static func isChallenge(_ head: ResponseHead) -> Bool {
        switch head.status {
        case 401: head.fields.has("WWW-Authenticate")
        case 407: head.fields.has("Proxy-Authenticate")
        default: false
        }
    }

    /// The response's body, or the protocol after it, is complete.
    mutating func bodyEnded() -> Action {
        switch phase {
        case .receiving, .upgraded:
            phase = .storing
            return .finish
        case .created, .askingAboutStorage, .askingAboutCanonical, .waitingForCookies, .answering,
            .waitingForConnectivity, .askingAboutRedirect, .challenged, .askingAboutResponse, .askingForRest,
            .askingAboutCaching, .storing, .aborted, .ended:
            return .nothing
        }
    }

    /// The delegate is shown the response that is to be stored.
    mutating func askedAboutCaching() { if endsOnceStored { phase = .askingAboutCaching } }

    /// The delegate's reply.
    mutating func repliedAboutCaching() { if isAskingAboutCaching { phase = .storing } }

    /// Whether the load ends once everything is stored.
    var endsOnceStored: Bool { if case .storing = phase { true } else { false } }

    /// Everything for which the end waits has been stored.
    mutating func stored() { if endsOnceStored { phase = .ended } }

    /// A failure that has no recourse.
    mutating func failed(_ failure: LoadFailure) -> Action {
        if ignoresAnswer { return .nothing }
        return fail(failure)
    }

    /// The failure of an answer. The load takes the recourse if it is in the phase for that, and fails
    /// otherwise; after a request for the rest of a download, with the failure that had cut the download off.
    mutating func answerFailed(_ failure: LoadFailure, _ recourse: Recourse) -> Action {
        switch recourse {
        case .none: break
        case .staleResponse(let response, let content):
            if isAnswering { return .useStored(response, content) }
        case .connectivity(let wait):
            guard isAnswering else { break }
            phase = .waitingForConnectivity(wait)
            defer { hasToldOfConnectivity = true }
            return .waitForNetwork(isFirst: !hasToldOfConnectivity)
        case .rest(let request, let rest):
            guard deliversBody else { break }
            phase = .askingForRest(rest)
            return .send(request, .rest(rest))
        }
        if case .askingForRest(let rest) = phase { return fail(rest.failure) }
        return failed(failure)
    }

    /// The client has ended the load; call `takeAborted()` before the client is told.
    mutating func aborted(keeping partial: @autoclosure () -> PartialDownload?) {
        switch phase {
        case .aborted, .ended: return
        case .created, .askingAboutStorage, .askingAboutCanonical, .waitingForCookies, .answering,
            .waitingForConnectivity, .askingAboutRedirect, .challenged, .askingAboutResponse, .receiving,
            .askingForRest,
            .upgraded, .askingAboutCaching, .storing:
            phase = .aborted(partial())
        }
    }

    /// The client is told of that end.
    ///
    /// - Returns: The partial file of a download that was aborted.
    mutating func takeAborted() -> PartialDownload? {
        guard case .aborted(let partial) = phase else { return nil }
        phase = .ended
        return partial
    }

    /// The load was ended without a further callback.
    mutating func cancelled() { phase = .ended }

    private mutating func fail(_ failure: LoadFailure) -> Action {
        phase = .ended
        return .fail(failure)
    }
}
