internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// One of the four that can answer a load's request: a server, the cache, a `URLProtocol` of the program, or
/// local content (a file or data URL).
///
/// Used inside the gate of its load. It reports events to its owner, none after `cancel()`.
protocol Answer: AnyObject {
    /// Begins to answer a request.
    func start(_ request: AnswerRequest)

    /// Called in a pass of a scheduled mode, after `AnswerOwner.wakeUp()`: continues everything that waited
    /// for that.
    func serve()

    /// Stops reading and delivering content, so that flow control holds the sender back.
    func stopReading()

    /// Undoes `stopReading()`. Called in each pass in which the load takes content, so it does nothing
    /// otherwise.
    func startReading()

    /// The load is suspended: nothing is sent or read any more, and what other loads wait for is given up.
    /// The next `serve()` comes when the load is resumed.
    func suspend()

    /// Undoes `suspend()`. Called also after the load's gate has refused an event: refused events come again.
    func resume()

    /// The delegate's methods have been called with the challenge that was shown last.
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling)

    /// Ends the answer. Meanwhile it may report a step, that its connection was closed; afterwards no event
    /// comes.
    func cancel()

    /// Whether the answer waits for something on this machine and not for a peer: the delegate has not
    /// replied, all connections are in use, or received bytes have not been read yet. That time does not
    /// count as idle time (rule UC-58).
    var waitsLocally: Bool { get }
}

/// Defaults for an answer that has no sender to hold back, because it delivers only what the load takes, that
/// holds nothing which others wait for, and that shows no challenges.
extension Answer {
    func stopReading() {}
    func startReading() {}
    func suspend() {}
    func resume() {}
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling) {}
}

/// A request that an answer is asked for, with the load's conditions for it.
struct AnswerRequest {
    let request: LoadRequest
    /// The fields that ask a server to confirm a stored response.
    var cacheFields: [(name: String, value: String)] = []
    /// Whether the request may go over a connection that was kept open, as `SendReason.mayReuse` says; false
    /// once `RetryRule` has had it sent again.
    var mayReuse = true
}

/// An event of an answer, for its owner. Each restarts the load's idle time (rule UC-58).
enum AnswerEvent {
    case step(ExchangeStep)
    /// Bytes have come that make up no other event yet, or something else shows that the peer is alive.
    case progress
    /// The obstacle for which the load waits, besides the peer; nil for none.
    case obstacle(LoadObstacle?)
    /// The request is being sent, with these fields.
    case sending(HeaderFields)
    /// Bytes of the request's body were sent: in this piece, so far, and in total.
    case sent(Int, total: Int, expected: Int)
    /// An interim response other than 100.
    case informational(ResponseHead)
    /// The body has to be sent again: the delegate is asked for a new stream (rule UC-39).
    case needsBodyStream(URLRequest)
    /// The delegate is to be shown `challenge`; see `Answer.challengeHandled(_:)`.
    case challenge(URLAuthenticationChallenge, silent: URLCredential?, isOfTLS: Bool)
    /// There is a decision about the last challenge.
    case decided
    case cancelledChallenge(URLAuthenticationChallenge)
    /// There is a credential for the challenge in the head of the last response: the request is to be sent
    /// again.
    case hasCredential
    /// There is no credential for that challenge: the response is the result (rule UC-48).
    case hasNoCredential
    /// The head of an HTTP response.
    case head(ResponseHead, bodyLength: Int64?, from: ResponseSource)
    /// A response of a `URLProtocol`, of the cache or of local content. Without a policy it is not stored.
    case response(URLResponse, URLCache.StoragePolicy?)
    case redirect(URLRequest, URLResponse)
    case content(Data)
    case end
    case failed(LoadFailure)
}

/// The sender of a response, as far as it is known.
struct ResponseSource {
    /// Whether a proxy may have made the response, because the request went to it as it is or was a CONNECT.
    var isFromProxy = false
    /// The request has asked for the server's go-ahead.
    var hadExpectation = false
    /// Whether this is the response to a CONNECT: it has no body, and its connection is closed.
    var isHeadAlone = false
    /// Whether TLS has verified the server. If not, its responses and its Strict-Transport-Security are not
    /// kept for other loads (RFC 6797 §8.1 for HSTS; browsers do not keep such responses either).
    var isVerified = false

    /// Whether the response may be kept for other loads: the server was not accepted in spite of its
    /// certificate.
    func isTrustworthy(for request: LoadRequest) -> Bool { !request.isSecure || isVerified }
}

/// The driver of the load whose request is answered.
protocol AnswerOwner: AnyObject, Sendable {
    /// Takes an event; called inside the gate.
    func received(_ event: AnswerEvent)

    /// Makes `Answer.serve()` be called in a pass of a scheduled mode. Any thread may call it.
    func wakeUp()

    /// Notes that the program was called, or may have been: a run that ends after a source then ends (rule
    /// RL-37).
    func noteCall()

    /// Whether the delegate's decision about a server also applies to later loads with the same pool (rule
    /// US-58).
    var sharesTrustDecisions: Bool { get }

    /// Whether more events may come: no question to the delegate is open, and it takes more content.
    var mayRead: Bool { get }
}
