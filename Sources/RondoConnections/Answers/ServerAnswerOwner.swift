internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// What a load tells the server's answer beyond the request.
protocol ServerAnswerOwner: AnswerOwner {
    /// What the connection is called in run loops while it serves the load; nil: nothing of its own.
    var nameInRunLoops: String? { get }

    /// The shared queue of the only loop and mode that serve the load; nil: there are several.
    var onlyQueue: SharedQueue? { get }

    func forEachQueue(_ body: (SharedQueue) -> Void)

    /// Whether the load began at the origin of `address`.
    func isAtOrigin(_ address: WebAddress) -> Bool

    /// Adds the fields of cookies and cache.
    func addFields(of request: LoadRequest, to fields: inout HeaderFields)

    /// Where it stands among those that wait for a connection.
    var priority: Float { get }

    /// - Parameter obstacle: Nil: there is none any more.
    func noteObstacle(_ obstacle: LoadObstacle?)

    /// The request is on its way with these fields.
    func noteSent(_ fields: HeaderFields)

    /// A proxy makes a tunnel for http too.
    var wantsTunnel: Bool { get }

    /// The channel of the exchange under way: what loops bring to it is let in from here on. Nil: there is none.
    func setChannel(_ channel: SocketChannel?)
}
