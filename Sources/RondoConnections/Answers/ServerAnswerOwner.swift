internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The owner of a server's answer: what it knows of the load beyond the request.
protocol ServerAnswerOwner: AnswerOwner {
    /// The name of the connection's sources in run loops while it serves the load; nil for the default.
    var nameInRunLoops: String? { get }

    /// The shared queue of the only loop and mode that serve the load; nil if there are several.
    var onlyQueue: SharedQueue? { get }

    func forEachQueue(_ body: (SharedQueue) -> Void)

    /// Whether the load began at the origin of `address`.
    func isAtOrigin(_ address: WebAddress) -> Bool

    /// Adds the fields of cookies and cache.
    func addFields(of request: LoadRequest, to fields: inout HeaderFields)

    /// The load's priority in the queue for a connection.
    var priority: Float { get }

    /// - Parameter obstacle: Nil if there is none any more.
    func noteObstacle(_ obstacle: LoadObstacle?)

    /// Notes that the request has been sent with these fields.
    func noteSent(_ fields: HeaderFields)

    /// Whether a proxy is to make a tunnel for http too.
    var wantsTunnel: Bool { get }

    /// The channel of the exchange under way: what loops bring to it is let in from here on. Nil: there is none.
    func setChannel(_ channel: SocketChannel?)
}
