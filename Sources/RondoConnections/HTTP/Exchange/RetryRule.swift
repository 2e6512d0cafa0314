/// The rule for repeating a request whose connection was lost before the server answered, or whose server
/// said by a 408 that it had given up waiting. The request goes over a new connection, and the delegate does
/// not notice. All conditions are in this file (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
///
/// `LoadState` decides what a load sends, and for which reason (`SendReason`). It does not learn of a
/// repetition: the load stays in its phase.
///
/// `ServerAnswer` asks the rule about each failed exchange; what an exchange knows are its `Facts`. So over a
/// kept connection a POST of which a byte was sent fails, unless its body still waits for the go-ahead; a GET
/// is sent again. An idle connection that is seen to be dead is never leased (`Origin.prepare`).
struct RetryRule {
    /// How often a request is sent again.
    static let maximum = 1

    /// How far a request and its response have come, as its exchange knows.
    struct Facts {
        /// The connection has served a request before: the server may have closed it while it was idle.
        let isReusedConnection: Bool
        /// No byte of the request was sent.
        let isUnsent: Bool
        /// The body is held back until the server's go-ahead.
        let isWaitingForGoAhead: Bool
        /// A byte of a response has come.
        let hasResponse: Bool
        /// An interim response has come.
        let hasInformational: Bool
    }

    /// How often the current request was sent again.
    private var count = 0

    /// Begins with another request.
    mutating func reset() { count = 0 }

    /// Notes that the request is sent again.
    mutating func noteRetry() { count += 1 }

    /// Whether `request` is sent again after its exchange has failed.
    func allowsRetry(
        of request: LoadRequest, after failure: ExchangeFailure, _ facts: Facts
    ) -> Bool {
        guard count < Self.maximum, failure.isOfConnection, !facts.hasResponse else { return false }
        // A server that has the head and waits for the body cannot have acted on the request (rule UC-42).
        return facts.isWaitingForGoAhead && !facts.isUnsent || isHarmless(request, facts)
    }

    /// Whether `request` is sent again after a response with this status. A 408 on a kept connection has
    /// crossed with the request (RFC 9110 §15.5.9): it is treated like a connection that the server closed.
    func allowsRetry(
        of request: LoadRequest, afterStatus status: Int, _ facts: @autoclosure () -> Facts
    )
        -> Bool
    {
        guard status == 408, count < Self.maximum else { return false }
        let facts = facts()
        return !facts.hasInformational && isHarmless(request, facts)
    }

    /// The connection was a kept one, which the server may have closed before the request came; and the
    /// request is idempotent, or no byte of it was sent.
    private func isHarmless(_ request: LoadRequest, _ facts: Facts) -> Bool {
        facts.isReusedConnection && (request.isIdempotent || facts.isUnsent)
    }
}

extension ExchangeFailure {
    /// Whether the request may succeed over another connection. A fault of the request or of its body would
    /// fail there too.
    fileprivate var isOfConnection: Bool {
        switch self {
        case .channel: true
        case .http(let failure): failure.kind != .invalidRequest
        case .tunnelChallenge, .bodyStreamFailed, .bodyTooShort, .bodyTooLong: false
        }
    }
}
