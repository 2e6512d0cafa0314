internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// One request to a server and its response, over any version of HTTP. `Route.makeExchange` makes it, and
/// decides the version: HTTP/1.1, or HTTP/2 once there is an exchange for it.
///
/// The layers above it know neither codec nor connection. The connection's events pass the load's gate
/// (`ChannelGate`). Its owner ensures that one thread at a time uses it.
protocol Exchange: AnyObject, Sendable {
    // MARK: Commands

    /// Sets the closures that ask about the server while a new connection is secured; nil to ask nothing.
    /// Call it before `start(_:in:label:)`.
    func askAboutPeer(_ trust: ((TLSTrust) -> Void)?, identity: ((TLSIdentityRequest) -> Void)?)
    /// Sends `request`, now or once the connection is open.
    ///
    /// - Parameters:
    ///   - queues: Those of the modes in which the exchange is to be served.
    ///   - label: The name of the connection in run loops meanwhile; nil for the default.
    func start(_ request: consuming OutgoingRequest, in queues: ModeQueues, label: String?)
    /// Stops reading, so that flow control holds the server back.
    func stopReading()
    /// Undoes `stopReading()`, and does nothing if the exchange reads.
    func startReading()
    /// The load is suspended: nothing is sent or read, and no event comes, until `resume()`.
    func suspend()
    /// Undoes `suspend()`. Call it also after the load's gate has refused an event: refused events come
    /// again.
    func resume()
    /// Serves the exchange in a pass of its load: the protocol of an upgrade, if that has the connection, or
    /// else the body.
    ///
    /// - Parameter continuesBody: Whether the body, which waited for its stream or for the server's go-ahead,
    ///   is sent on.
    func serve(continuesBody: Bool)
    /// Call it when the server has agreed to another protocol. The protocol gets the connection once the
    /// response's head has been read. The connection is never reused, and does not count against the limit of
    /// its server any more (rule WS-29).
    func upgrade(to upgrade: any Upgrade)
    /// Ends the exchange in any state, without a further event. The connection is kept if it can serve
    /// another request.
    ///
    /// - Parameter queue: The queue with which the connection may stay registered until `unregistration` is
    ///   performed; nil for none.
    /// - Returns: False if an open connection had to be closed.
    func end(registeredAt queue: SharedQueue?) -> Bool
    /// Excludes other loads from the connection, because this load's delegate has accepted its server or
    /// shown it an identity.
    func makePrivate()

    // MARK: Questions

    var key: ConnectionKey { get }
    /// Whether nothing comes at present because of this side and not because of the server.
    var waitsLocally: Bool { get }
    /// What decides whether the request is sent again.
    var retryFacts: RetryRule.Facts { get }
    /// The measurements of the exchange, for the metrics.
    var record: ExchangeRecord { get }

    /// The work that unregisters the idle connection; nil if it is registered nowhere.
    var unregistration: (any DeferredWork)? { get }
}

/// The owner of an exchange, which acts for a load.
protocol ExchangeOwner: AnyObject, Sendable {
    /// The gate of the load, which the connection's events pass from the exchange's start to its end.
    var gate: any ChannelGate { get }
    /// False if the load is suspended, or was ended by its client: then nothing more is sent.
    var maySend: Bool { get }
    /// Takes an event; none comes after `Exchange.end(registeredAt:)`.
    func received(_ event: ExchangeEvent)
}

/// Which details an exchange reports besides its events.
struct ExchangeReporting {
    /// Steps, and heads as text. Making the text takes longer than everything else for a small head.
    let steps: Bool
    /// The times of steps: each reads the clock.
    let times: Bool
}

/// An event of an exchange, for its owner.
enum ExchangeEvent {
    case step(ExchangeStep)
    /// A sign of life of the server, or of the connection to it: bytes have come that complete no other
    /// event.
    case progress
    /// Bytes of the request's body were sent: in this piece, so far, and in total.
    case sent(Int, total: Int, expected: Int)
    /// The body's stream has no bytes yet: `serve(continuesBody:)` sends it on when there are some.
    case waitsForBody
    /// The head was sent, and the body waits for the server's go-ahead: `serve(continuesBody:)` sends it
    /// without.
    case waitsForGoAhead
    /// An interim response other than 100.
    case informational(ResponseHead)
    /// The server has given its go-ahead.
    case mayGoAhead
    /// The head of the final response. `isVerified`: whether the server's certificate has passed all checks.
    case head(ResponseHead, bodyLength: Int64?, isVerified: Bool)
    case body(Data)
    /// The response is complete.
    case end
    case failed(ExchangeFailure)
}

/// The measurements of an exchange, for the metrics.
struct ExchangeRecord {
    let status: Int?
    let address: SocketAddress?
    let isReusedConnection: Bool
    /// The protocol of the connection, as ALPN names it.
    let protocolName: String
    let times: ExchangeTimes
    let headBytesSent: Int
    let bodyBytesSent: Int
    let bodyBytesReceived: Int64
}
