internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// One request to a server and its response, whatever version of HTTP carries them.
///
/// This is the seam: the layers above it know neither codec nor connection. Its owner lets one thread at a time in.
protocol Exchange: AnyObject, Sendable {
    // MARK: Commands

    /// Has these asked about the server while a new connection is secured; nil: nothing is asked. To be called before
    /// `start(_:)`.
    func askAboutPeer(_ trust: ((TLSTrust) -> Void)?, identity: ((TLSIdentityRequest) -> Void)?)
    /// Sends `request`, now or once the connection is open.
    func start(_ request: consuming OutgoingRequest)
    /// Reads no more, so that flow control holds the server back.
    func pause()
    func resume()
    /// The request's body has bytes again.
    func bodyIsReady()
    /// The body need not wait for the server's go-ahead any longer.
    func goAhead()
    /// The server has agreed to another protocol, which has the connection when the response's head was read. It is never
    /// kept, and takes none of its server's places any more (rule WS-29).
    func upgrade(to upgrade: any Upgrade)
    /// In a pass that the upgrade has asked for.
    func serveUpgrade()
    /// Ends it, wherever it stands; no event comes afterwards. The connection is kept if it can serve another request.
    ///
    /// - Parameter queue: Where the connection may remain registered, until `idleConnection` leaves; nil: nowhere.
    /// - Returns: False if an open connection had to be closed.
    func end(registeredAt queue: SharedQueue?) -> Bool
    /// No other load may use the connection: this one has let its server through, or shown an identity.
    func makePrivate()

    /// The response that `head` makes; nil where Foundation makes none.
    func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse?

    // MARK: Questions

    var key: ConnectionKey { get }
    /// That nothing comes is not the server's fault at present.
    var isHeldByClient: Bool { get }
    /// The body is held back until the server says go ahead.
    var isWaitingForGoAhead: Bool { get }
    /// The server cannot have acted on the request, or does no harm if it does so twice.
    var mayBeSentAgain: Bool { get }
    /// The server has ended an idle connection, and said so by a response that is none to this request.
    var hasServerTimedOut: Bool { get }
    /// The server's certificate was checked in full, and is good.
    var isPeerVerified: Bool { get }
    /// What it took, for the metrics.
    var record: ExchangeRecord { get }

    // MARK: Loops

    /// The channel that serves this exchange only: what loops bring to it goes through the load's gate.
    var channel: SocketChannel { get }
    /// The connection, if it is idle and registered with a loop still.
    var idleConnection: ServerConnection? { get }
}

/// What an exchange wants of the load that it serves.
protocol ExchangeOwner: AnyObject, Sendable {
    /// The name of the connection in run loops.
    var label: String? { get }
    /// The shared queues of the modes where the exchange is to be served.
    func forEachQueue(_ body: (SharedQueue) -> Void)
    func received(_ event: ExchangeEvent)
    /// Bytes have come of which there is no event.
    func noteReceived()
    /// Has the owner called in a pass of one of its modes.
    func wakeUp()
}

/// How much an exchange tells beside its events.
struct ExchangeTelling {
    /// Steps, and heads as text, which takes longer than all else about a small one.
    let steps: Bool
    /// When what happened: a look at the clock each time.
    let times: Bool
}

/// What an exchange tells its owner.
enum ExchangeEvent {
    case step(ExchangeStep)
    /// The server, or the way to it, shows signs of life.
    case progress
    /// Bytes of the request's body went out: now, so far, in all.
    case sent(Int, total: Int, expected: Int)
    /// The body's stream has nothing to send yet: `bodyIsReady()` is wanted when it has.
    case waitsForBody
    /// The head is out, and the body waits for the server's go-ahead: `goAhead()` ends the wait.
    case waitsForGoAhead
    /// An interim response other than 100.
    case informational(ResponseHead)
    /// The server has said go ahead.
    case mayGoAhead
    case head(ResponseHead, bodyLength: Int64?)
    case body(Data)
    /// The response is complete.
    case end
    case failed(ExchangeFailure)
}

/// What an exchange took, for the metrics.
struct ExchangeRecord {
    let status: Int?
    let address: SocketAddress?
    let isReusedConnection: Bool
    let times: ExchangeTimes
    let headBytesSent: Int
    let bodyBytesSent: Int
    let bodyBytesReceived: Int64
}
