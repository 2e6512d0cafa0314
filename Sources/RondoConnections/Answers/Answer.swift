internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// What can answer a load's request: a server, the cache, a `URLProtocol` of the program, or the URL itself.
///
/// Used inside the gate of its load. It calls its owner back with events, never after `cancel()`.
protocol Answer: AnyObject {
    /// In a pass of a scheduled mode, after `AnswerOwner.wakeUp()`: goes on with all that waited and can go on.
    func serve()

    /// No more content for now: the sender is held back.
    func pause()

    /// Content again.
    func resume()

    /// The delegate's methods have been called with the challenge that was shown last.
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling)

    /// Ends it, without a further event.
    func cancel()

    /// The answer waits for this machine and not for a peer: the delegate has not replied, all connections are in use, or
    /// received bytes were not read yet. That time is not held against the sender (rule UC-58).
    var isWaitingLocally: Bool { get }
}

/// An event of an answer, for its owner.
enum AnswerEvent {
    case step(ExchangeStep)
    /// A sign of life of which there is nothing else to say.
    case progress
    /// Bytes of the request's body went out: now, so far, in all.
    case sent(Int, total: Int, expected: Int)
    /// An interim response other than 100.
    case informational(ResponseHead)
    /// The body has to be sent again: the delegate is asked for a new stream (rule UC-39).
    case needsBodyStream(URLRequest)
    /// The delegate is shown `challenge`; see `Answer.challengeHandled(_:)`.
    case challenge(URLAuthenticationChallenge, silent: URLCredential?, isTrust: Bool)
    case cancelledChallenge(URLAuthenticationChallenge)
    /// The challenge that came with the head of the last response has a credential: the request is to be sent again.
    case hasCredential
    /// It has none: that response is the result (rule UC-48).
    case hasNoCredential
    /// The head of a response of HTTP.
    case head(ResponseHead, bodyLength: Int64?, from: ResponseOrigin)
    /// A response that a `URLProtocol`, the cache or the URL itself has; nil: it is not to be kept.
    case response(URLResponse, URLCache.StoragePolicy?)
    case redirect(URLRequest, URLResponse)
    case content(Data)
    case end
    case failed(LoadFailure)
}

/// The sender of a response, as far as it is known.
struct ResponseOrigin {
    /// A proxy may have made it: one in whose name a server asks for credentials is not answered.
    var isFromProxy = false
    /// The request's body was waiting for the server's go-ahead.
    var isHoldingBackBody = false
    /// There is no body: it is the response to a CONNECT, whose connection is gone.
    var isHeadAlone = false
    /// TLS has verified the server. If it has not, nothing that the server says is remembered for other loads
    /// (RFC 6797 §8.1 for HSTS; browsers keep no such response either).
    var isVerified = false

    /// Whether what a server says may be remembered for other loads: it was not let through in spite of its certificate.
    func isTrustworthy(for request: LoadRequest) -> Bool { !request.isSecure || isVerified }
}

/// The load that an answer answers.
protocol AnswerOwner: AnyObject, Sendable {
    /// Inside the gate.
    func received(_ event: AnswerEvent)

    /// Has `Answer.serve()` called, in a pass of a scheduled mode. Any thread.
    func wakeUp()

    /// Something has come that says nothing yet.
    func noteProgress()

    /// The program was called, or may have been: a run that ends after a source ends (rule RL-37).
    func noteCall()

    /// The delegate's decision about a server holds for later loads by the same pool (rule US-58).
    var sharesVerdicts: Bool { get }

    /// More events may come: the delegate is not being asked, and wants more.
    var takesMore: Bool { get }
}
