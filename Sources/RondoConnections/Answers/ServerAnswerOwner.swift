internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The owner of an answer by servers: what the answer needs to know of the load beside the request.
protocol ServerAnswerOwner: AnswerOwner {
    /// The name of the connection's sources in run loops while it serves the load; nil for the default.
    var nameInRunLoops: String? { get }

    /// The shared queue of the only loop and mode that serve the load; nil if there are several.
    var onlyQueue: SharedQueue? { get }

    func forEachQueue(_ body: (SharedQueue) -> Void)

    /// Whether `address` belongs to the origin of the load's first request.
    func isAtOrigin(_ address: WebAddress) -> Bool

    /// Adds the fields of cookies and cache.
    func addFields(of request: LoadRequest, to fields: inout HeaderFields)

    /// The load's priority in the queue for a connection.
    var priority: Float { get }

    /// - Parameter obstacle: Nil if there is none any more.
    func noteObstacle(_ obstacle: LoadObstacle?)

    /// Notes that the request has been sent with these fields.
    func noteSent(_ fields: HeaderFields)

    /// Whether an HTTP proxy is to make a tunnel for http URLs too.
    var wantsTunnel: Bool { get }

    /// Sets the channel of the current exchange, whose events are admitted from here on; nil for none.
    func setChannel(_ channel: SocketChannel?)
}
