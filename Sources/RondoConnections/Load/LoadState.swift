internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A load from its request to its end: inputs in, actions out. It knows no socket, no loop and no delegate.
///
///     created ─ begin ─▶ asking(canonical) ─ answer ─▶ exchanging ─ head ─▶ receiving ─ end ─▶ ended
///                                                       ▲      │
///                                                       │      ├ redirect ─▶ asking(redirect) ─ nil ─▶
///                                                       │      │                 │ answer      receiving
///                                                       ├──────│─────────────────┘
///                                                       │      └ 401, 407 ─▶ challenged ─ nobody ─▶
///                                                       │                        │        receiving
///                                                       └────────────────────────┘ credential
///
/// A failure ends it from anywhere; an ended load takes no input and gives no action.
struct LoadState {
    /// After as many redirects as this the next one fails the load (rule UC-32, the number of Apple's
    /// `NSURLErrorHTTPTooManyRedirects`).
    static let maximumRedirects = 16

    /// What has been answered: by a server, or by a protocol of the program.
    enum Reply: Equatable {
        case http(ResponseHead, bodyLength: Int64?)
        case other(URLResponse)

        /// Nil for what is no HTTP.
        var status: Int? {
            switch self {
            case .http(let head, _): head.status
            case .other(let response): (response as? HTTPURLResponse)?.statusCode
            }
        }
    }

    private enum Phase {
        case created
        /// The delegate was shown the canonical request; nothing has been sent.
        case askingAboutCanonical
        case exchanging
        /// The delegate was shown a redirect; its own response stands ready, should the delegate refuse.
        case askingAboutRedirect(Reply)
        /// The server, or a proxy, wants to know who asks; its own response stands ready, should nobody say.
        case challenged(Reply)
        case receiving
        case ended
    }

    enum Action: Equatable {
        case nothing
        /// Ask the delegate whether `request` may be sent.
        case ask(URLRequest, redirect: Reply?)
        /// Send `request`; what is left of an exchange before it is of no interest.
        case send(LoadRequest)
        /// Find out who asks, and say `authenticated()` or `notAuthenticated()`.
        case authenticate(ResponseHead)
        case deliver(Reply)
        /// The body's bytes are the delegate's from here on, or nobody's.
        case finish
        case fail(LoadFailure)
    }

    private var phase = Phase.created
    private var redirects = 0
    /// Redirects that were followed.
    private(set) var redirectCount = 0
    private(set) var request: LoadRequest
    /// The request that the exchange under way, or the last one, is for.
    private(set) var lastSent: LoadRequest
    /// The first that was sent.
    private var origin: LoadRequest?

    init(_ request: URLRequest) {
        self.request = LoadRequest(request)
        lastSent = self.request
    }

    var url: URL? { request.url }

    /// The request is on its way.
    mutating func noteSending() {
        lastSent = request
        if origin == nil { origin = request }
    }

    /// Whether `address` is of the origin that the load began at, which is the one that its settings were made for
    /// (RFC 6454, section 5).
    func isAtOrigin(_ address: WebAddress) -> Bool {
        guard let first = origin?.address else { return origin == nil }
        return first.isSecure == address.isSecure && first.port == address.port
            && first.host.lowercased() == address.host.lowercased()
    }

    var isEnded: Bool { if case .ended = phase { true } else { false } }

    /// The delegate was asked about a request, and has not answered yet.
    var isAsking: Bool {
        switch phase {
        case .askingAboutCanonical, .askingAboutRedirect: true
        case .created, .exchanging, .challenged, .receiving, .ended: false
        }
    }

    var hasBegun: Bool { if case .created = phase { false } else { true } }

    /// Whether body bytes that come now are the delegate's.
    var deliversBody: Bool { if case .receiving = phase { true } else { false } }

    /// The first turn on the loop.
    mutating func begin() -> Action {
        guard case .created = phase else { return .nothing }
        if CanonicalRequest.isSent(asIs: request) {
            phase = .exchanging
            return .send(request)
        }
        guard let canonical = CanonicalRequest.of(request.value) else { return fail(.unsupportedURL) }
        guard canonical != request.value else {
            phase = .exchanging
            return .send(request)
        }
        phase = .askingAboutCanonical
        return .ask(canonical, redirect: nil)
    }

    /// The delegate's answer to `.ask`.
    mutating func answered(_ answer: URLRequest?) -> Action {
        switch phase {
        case .askingAboutCanonical:
            guard let answer else { return fail(.canonicalRequestRefused) }
            return go(to: answer)
        case .askingAboutRedirect(let reply):
            guard let answer else {
                phase = .receiving
                return .deliver(reply)
            }
            redirectCount += 1
            return go(to: answer)
        case .created, .exchanging, .challenged, .receiving, .ended:
            return .nothing
        }
    }

    /// A credential was found: the request is sent again with it.
    mutating func authenticated() -> Action {
        guard case .challenged = phase else { return .nothing }
        phase = .exchanging
        return .send(request)
    }

    /// There is no credential: the response to the challenge is the result (rule UC-48).
    mutating func notAuthenticated() -> Action {
        guard case .challenged(let reply) = phase else { return .nothing }
        phase = .receiving
        return .deliver(reply)
    }

    private mutating func go(to answer: URLRequest) -> Action {
        guard let next = CanonicalRequest.of(answer) else { return fail(.unsupportedURL) }
        request = LoadRequest(next)
        phase = .exchanging
        return .send(request)
    }

    /// The head of a final response.
    ///
    /// - Parameters:
    ///   - isHoldingBackBody: The request's body was waiting for the server's go-ahead.
    ///   - isFromProxy: A proxy may have made it. A server that asks in a proxy's name is not answered.
    mutating func received(
        _ head: ResponseHead, bodyLength: Int64?, isHoldingBackBody: Bool = false, isFromProxy: Bool = true
    ) -> Action {
        guard case .exchanging = phase, let url else { return .nothing }
        if head.status == 417, isHoldingBackBody {
            // It knows no go-ahead: without asking for one, then (RFC 9110 §15.5.18).
            var without = request.value
            without.setValue(nil, forHTTPHeaderField: "Expect")
            request = LoadRequest(without)
            return .send(request)
        }
        if Self.isChallenge(head), head.status != 407 || isFromProxy {
            phase = .challenged(.http(head, bodyLength: bodyLength))
            return .authenticate(head)
        }
        let decision = Redirect.follow(
            status: head.status, location: head.fields.agreed("Location"),
            method: request.method, currentURL: url)
        switch decision {
        case .notARedirect:
            phase = .receiving
            return .deliver(.http(head, bodyLength: bodyLength))
        case .missingLocation:
            return fail(.redirectWithoutLocation(status: head.status))
        case .unsupported(let target):
            return fail(.unsupportedRedirect(target))
        case .to(let target, let method, let keepsBody, let sameOrigin):
            let next = RedirectedRequest.from(
                request.value, to: target, method: method, keepsBody: keepsBody, sameOrigin: sameOrigin)
            return redirect(to: next, by: .http(head, bodyLength: bodyLength))
        }
    }

    private mutating func redirect(to next: URLRequest, by reply: Reply) -> Action {
        guard redirects < Self.maximumRedirects else {
            return fail(.tooManyRedirects(Self.maximumRedirects))
        }
        redirects += 1
        phase = .askingAboutRedirect(reply)
        return .ask(next, redirect: reply)
    }

    /// A protocol of the program says that the request goes elsewhere.
    mutating func redirected(to next: URLRequest, by response: URLResponse) -> Action {
        guard case .exchanging = phase else { return .nothing }
        return redirect(to: next, by: .other(response))
    }

    /// A response that is not HTTP's, or that a protocol of the program has made; there may be several.
    mutating func received(_ response: URLResponse) -> Action {
        switch phase {
        case .exchanging, .receiving:
            phase = .receiving
            return .deliver(.other(response))
        case .created, .askingAboutCanonical, .askingAboutRedirect, .challenged, .ended:
            return .nothing
        }
    }

    /// Rule UC-52: without the field that says how, there is nothing to answer.
    private static func isChallenge(_ head: ResponseHead) -> Bool {
        switch head.status {
        case 401: head.fields.has("WWW-Authenticate")
        case 407: head.fields.has("Proxy-Authenticate")
        default: false
        }
    }

    /// The response's body is complete.
    mutating func bodyEnded() -> Action {
        guard case .receiving = phase else { return .nothing }
        phase = .ended
        return .finish
    }

    mutating func failed(_ failure: LoadFailure) -> Action {
        if isEnded { return .nothing }
        return fail(failure)
    }

    /// No more callbacks, whatever comes.
    mutating func cancelled() {
        phase = .ended
    }

    private mutating func fail(_ failure: LoadFailure) -> Action {
        phase = .ended
        return .fail(failure)
    }
}
