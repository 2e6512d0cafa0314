internal import RondoHTTP
internal import RondoStreams

/// An HTTP/1.1 connection to a server, with the codec that speaks over it.
final class HTTP1Connection: ServerConnection {
    /// Also changed by the exchange that uses the connection.
    // Unchecked: inside the gate of the exchange, or under the origin's lock, so that no two accesses
    // overlap. With the checks of this and of the exchange's variables bench-guard's http.request takes 6 %
    // more instructions.
    @exclusivity(unchecked) var codec = HTTP1Codec()
    /// Whether a response has come that may belong to no request, so that later responses may belong to other
    /// requests.
    private(set) var isDesynchronized = false

    override init(_ channel: SocketChannel, key: ConnectionKey, of origin: Origin, isReused: Bool = false) {
        super.init(channel, key: key, of: origin, isReused: isReused)
        if let heads = RecentHeads.current?.heads(of: ObjectIdentifier(origin)) { codec.recentHeads = heads }
    }

    /// Makes a parked connection ready for use again.
    convenience init(resuming socket: ParkedSocket, for key: ConnectionKey, of origin: Origin) {
        self.init(
            SocketChannel(resuming: socket, .init(host: key.host, port: key.port)), key: key, of: origin,
            isReused: true)
    }

    override func makeExchange(
        over lease: consuming Lease, for owner: any ExchangeOwner, reporting: ExchangeReporting
    ) -> any Exchange {
        HTTP1Exchange(over: self, by: lease, of: owner, reporting: reporting)
    }

    /// Makes the codec ready for another request.
    ///
    /// - Returns: False if it cannot continue.
    func startNextCycle() -> Bool { codec.startNextCycle() }

    func noteDesynchronized() { isDesynchronized = true }

    /// Shares `head`, which was read just now, with other connections of the loop.
    ///
    /// - Returns: The head that they share, equal to `head`.
    func share(_ head: ResponseHead) -> ResponseHead {
        guard codec.hasUnsharedHeads, let memory = RecentHeads.current else { return head }
        return memory.share(head, of: &codec, to: ObjectIdentifier(origin))
    }
}
