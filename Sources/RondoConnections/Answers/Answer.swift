internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// A source of the answer to a load's request: a server, the cache, a `URLProtocol` of the program, or the
/// URL itself.
///
/// Used inside the gate of its load. It reports events to its owner, never after `cancel()`.
protocol Answer: AnyObject {
    /// Called in a pass of a scheduled mode, after `AnswerOwner.wakeUp()`: continues everything that waited
    /// and can go on.
    func serve()

    /// Delivers no more content for now: the sender is held back.
    func pause()

    /// Delivers content again after `pause()`.
    func resume()

    /// The delegate's methods have been called with the challenge that was shown last.
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling)

    /// Ends the answer, without a further event.
    func cancel()

    /// Whether the answer waits for this machine and not for a peer: the delegate has not replied, all
    /// connections are in use, or received bytes have not been read yet. That time is not held against the
    /// sender (rule UC-58).
    var isWaitingLocally: Bool { get }
}

/// An event of an answer, for its owner.
enum AnswerEvent {
    case step(ExchangeStep)
    /// A sign of life of the peer that no other event reports.
    case progress
    /// Bytes of the request's body were sent: in this piece, so far, and in total.
    case sent(Int, total: Int, expected: Int)
    /// An interim response other than 100.
    case informational(ResponseHead)
    /// The body has to be sent again: the delegate is asked for a new stream (rule UC-39).
    case needsBodyStream(URLRequest)
    /// The delegate is to be shown `challenge`; see `Answer.challengeHandled(_:)`.
    case challenge(URLAuthenticationChallenge, silent: URLCredential?, isTrust: Bool)
    case cancelledChallenge(URLAuthenticationChallenge)
    /// There is a credential for the challenge in the head of the last response: the request is to be sent
    /// again.
    case hasCredential
    /// There is no credential for it: that response is the result (rule UC-48).
    case hasNoCredential
    /// The head of an HTTP response.
    case head(ResponseHead, bodyLength: Int64?, from: ResponseOrigin)
    /// A response that a `URLProtocol`, the cache or the URL itself has; without a policy it is not to be
    /// stored.
    case response(URLResponse, URLCache.StoragePolicy?)
    case redirect(URLRequest, URLResponse)
    case content(Data)
    case end
    case failed(LoadFailure)
}

/// The sender of a response, as far as it is known.
struct ResponseOrigin {
    /// A proxy may have made the response; if that asks for credentials in the name of the server, it gets
    /// none.
    var isFromProxy = false
    /// The request's body was waiting for the server's go-ahead.
    var isHoldingBackBody = false
    /// There is no body: this is the response to a CONNECT, whose connection is closed.
    var isHeadAlone = false
    /// Whether TLS has verified the server. If it has not, nothing that the server says is remembered for
    /// other loads (RFC 6797 §8.1 for HSTS; browsers do not keep such responses either).
    var isVerified = false

    /// Whether what the server says may be remembered for other loads: it was not accepted in spite of its
    /// certificate.
    func isTrustworthy(for request: LoadRequest) -> Bool { !request.isSecure || isVerified }
}

/// The load that is being answered.
protocol AnswerOwner: AnyObject, Sendable {
    /// Takes an event; called inside the gate.
    func received(_ event: AnswerEvent)

    /// Makes `Answer.serve()` be called in a pass of a scheduled mode. Any thread may call it.
    func wakeUp()

    /// Notes a sign of life of the peer: bytes have come that make up no event yet.
    func noteProgress()

    /// Notes that the program was called, or may have been: a run that ends after a source then ends (rule
    /// RL-37).
    func noteCall()

    /// Whether the delegate's decision about a server also applies to later loads with the same pool (rule
    /// US-58).
    var sharesVerdicts: Bool { get }

    /// Whether more events may come: the delegate is not being asked anything, and takes more.
    var takesMore: Bool { get }
}
