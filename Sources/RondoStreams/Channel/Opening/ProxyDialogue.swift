internal import RondoCore

/// The dialogue with a proxy on a new connection, before anything else: moves the bytes between the proxy and
/// a `ProxyNegotiation`.
///
/// The proxy's bytes are read without consuming them (MSG_PEEK, or SSL_peek over TLS with the proxy), and
/// then only as many are consumed as the negotiation has used: the first bytes of the host behind the proxy
/// stay in the kernel or in OpenSSL, for TLS with the host or for the owner.
struct ProxyDialogue {
    /// The most bytes that a proxy may send; HTTP clients allow about as much for a head.
    static let limit = 65_536
    /// The most bytes that one peek reads.
    private static let pieceSize = 4_096

    enum Progress {
        /// The connection leads to the host from now on.
        case done
        case waits(for: RunLoop.Source.Interest)
    }

    /// The connection with the proxy.
    let transport: ChannelTransport
    /// The proxy's host and port.
    private let host: String
    private let port: Int
    private var negotiation: any ProxyNegotiation
    private var unsent: ArraySlice<UInt8> = []
    /// The number of bytes that the proxy has sent so far.
    private(set) var received = 0
    /// True if the negotiation ends once `unsent` is sent.
    private var endsWhenSent = false

    init(over transport: ChannelTransport, _ route: ProxyRoute) {
        self.transport = transport
        (host, port) = (route.host, route.port)
        negotiation = route.negotiation
    }

    /// Sends the first message.
    mutating func begin() throws(ChannelError) -> Progress { try handle(negotiation.begin()) }

    /// Continues when the connection is ready: sends the rest, or reads the answer.
    mutating func advance(_ ready: RunLoop.Source.Interest) throws(ChannelError) -> Progress {
        guard unsent.isEmpty && !transport.hasUnsentBytes else { return try send() }
        // TLS may have waited for either direction.
        guard ready.contains(.read) || transport.engine != nil else { return .waits(for: .read) }
        return try receive()
    }

    private mutating func handle(_ step: NegotiationStep) throws(ChannelError) -> Progress {
        switch step {
        case .exchange(let bytes): unsent = bytes[...]
        case .done(let bytes):
            unsent = bytes[...]
            endsWhenSent = true
        case .failed(let error): throw .negotiation(error)
        }
        return try send()
    }

    private mutating func send() throws(ChannelError) -> Progress {
        let awaited: RunLoop.Source.Interest
        do throws(TransportError) {
            awaited = try transport.send(&unsent)
        } catch {
            throw error.channelError(host: host, port: port)
        }
        return endsWhenSent && unsent.isEmpty && !transport.hasUnsentBytes ? .done : .waits(for: awaited)
    }

    private mutating func receive() throws(ChannelError) -> Progress {
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        let step: NegotiationStep
        do throws(TransportError) {
            switch try transport.peek(into: &piece) {
            case .waits(let awaited): return .waits(for: awaited)
            case .end: step = .failed(negotiation.receiveEnd())
            case .bytes(let count): step = try hear(count, &piece)
            }
        } catch {
            throw error.channelError(host: host, port: port)
        }
        return try handle(step)
    }

    private mutating func hear(_ count: Int, _ piece: inout [UInt8]) throws(TransportError) -> NegotiationStep
    {
        var consumed = 0
        let step = piece.withUnsafeBytes {
            negotiation.receive(UnsafeRawBufferPointer(rebasing: $0.prefix(count)), consumed: &consumed)
        }
        precondition(
            (0...count).contains(consumed), "bug in Rondo: a negotiation took more than there was")
        try transport.discard(consumed, using: &piece)
        received += consumed
        switch step {
        case .exchange where received > Self.limit:
            return .failed(
                NegotiationError(
                    .protocolViolation,
                    description: "the proxy \(host) says more than \(Self.limit) bytes before it lets a "
                        + "connection through"))
        // Bytes that are not consumed would be read again and again.
        case .exchange(let answer) where consumed == 0 && answer.isEmpty:
            preconditionFailure("bug in Rondo: a negotiation neither takes what the proxy says nor answers")
        case .exchange, .done, .failed:
            return step
        }
    }
}
