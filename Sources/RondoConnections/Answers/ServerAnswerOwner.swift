internal import RondoCore
internal import RondoStreams

/// The owner of an answer by servers: what the answer needs to know of the load beside the request.
protocol ServerAnswerOwner: AnswerOwner {
    /// The name of the connection's sources in run loops while it serves the load; nil for the default.
    var nameInRunLoops: String? { get }

    /// The loops and modes that serve the load.
    var modes: [LoopMode] { get }

    /// The methods of the client's delegate that are known to be defaults; nil if it has no delegate.
    var defaults: DelegateDefaults? { get }

    /// The shared queues of these modes.
    var queues: ModeQueues { get }

    /// Whether `address` belongs to the origin of the load's first request.
    func isAtOrigin(_ address: WebAddress) -> Bool

    /// The load's priority in the queue for a connection.
    var priority: Float { get }

    /// False if the load is suspended, or was ended by its client: then nothing more is sent.
    var maySend: Bool { get }

    /// The load's gate, which the events of its exchanges pass.
    var gate: any ChannelGate { get }
}
