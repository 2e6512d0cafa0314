internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A load from its request to its end: inputs in, actions out. It knows no socket, no loop and no delegate.
///
///     created ─ begin ─▶ asking(canonical) ─ answer ─▶ exchanging ─ head ─▶ receiving ─ end ─▶ ended
///                                                       ▲      │
///                                                       │      └ redirect ─▶ asking(redirect) ─ nil ─▶
///                                                       receiving └───────────────────── answer ┘
///
/// A failure ends it from anywhere; an ended load takes no input and gives no action.
struct LoadState {
    /// After as many redirects as this the next one fails the load (rule UC-32, the number of Apple's
    /// `NSURLErrorHTTPTooManyRedirects`).
    static let maximumRedirects = 16

    private enum Phase {
        case created
        /// The delegate was shown the canonical request; nothing has been sent.
        case askingAboutCanonical
        case exchanging
        /// The delegate was shown a redirect; its own response stands ready, should the delegate refuse.
        case askingAboutRedirect(ResponseHead, bodyLength: Int64?)
        case receiving
        case ended
    }

    enum Action: Equatable {
        case nothing
        /// Ask the delegate whether `request` may be sent.
        case ask(URLRequest, redirect: ResponseHead?)
        /// Send `request`; what is left of an exchange before it is of no interest.
        case send(URLRequest)
        case deliver(ResponseHead, bodyLength: Int64?)
        /// The body's bytes are the delegate's from here on, or nobody's.
        case finish
        case fail(LoadFailure)
    }

    private var phase = Phase.created
    private var redirects = 0
    private(set) var request: URLRequest

    init(_ request: URLRequest) {
        self.request = request
    }

    var isEnded: Bool { if case .ended = phase { true } else { false } }

    /// Whether body bytes that come now are the delegate's.
    var deliversBody: Bool { if case .receiving = phase { true } else { false } }

    /// The first turn on the loop.
    mutating func begin() -> Action {
        guard case .created = phase else { return .nothing }
        guard let canonical = CanonicalRequest.of(request) else { return fail(.unsupportedURL) }
        guard canonical.url != request.url else {
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
        case .askingAboutRedirect(let head, let bodyLength):
            guard let answer else {
                phase = .receiving
                return .deliver(head, bodyLength: bodyLength)
            }
            return go(to: answer)
        case .created, .exchanging, .receiving, .ended:
            return .nothing
        }
    }

    private mutating func go(to answer: URLRequest) -> Action {
        guard let next = CanonicalRequest.of(answer) else { return fail(.unsupportedURL) }
        request = next
        phase = .exchanging
        return .send(next)
    }

    /// The head of a final response.
    mutating func received(_ head: ResponseHead, bodyLength: Int64?) -> Action {
        guard case .exchanging = phase, let url = request.url else { return .nothing }
        let decision = Redirect.follow(
            status: head.status, location: head.fields.values(for: "Location").first,
            method: request.httpMethod ?? "GET", currentURL: url)
        switch decision {
        case .notARedirect:
            phase = .receiving
            return .deliver(head, bodyLength: bodyLength)
        case .missingLocation:
            return fail(.redirectWithoutLocation(status: head.status))
        case .unsupported(let target):
            return fail(.unsupportedRedirect(target))
        case .to(let target, let method, let keepsBody, let sameOrigin):
            guard redirects < Self.maximumRedirects else {
                return fail(.tooManyRedirects(Self.maximumRedirects))
            }
            redirects += 1
            phase = .askingAboutRedirect(head, bodyLength: bodyLength)
            let next = RedirectedRequest.from(
                request, to: target, method: method, keepsBody: keepsBody, sameOrigin: sameOrigin)
            return .ask(next, redirect: head)
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
