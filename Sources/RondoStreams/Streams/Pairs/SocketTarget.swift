internal import RondoCore

/// The peer or the socket that the connection of two streams is made for.
enum SocketTarget {
    case host(String, port: Int)
    // Indirect, because it is larger than the others, and rare.
    /// The address of a Unix-domain socket.
    indirect case address(SocketAddress)
    /// A connected socket of the client, which the streams leave open unless a property says otherwise
    /// (rule ST-40).
    case descriptor(Int32)
    /// A socket that a listener has accepted.
    case socket(Socket)
    /// An open connection that nothing else uses.
    case channel(SocketChannel)

    /// The peer's host; `address` is the peer's address, if the connection knows it.
    func host(at address: SocketAddress?) -> String {
        switch self {
        case .host(let host, _): host
        case .address(let address): address.host
        case .channel(let channel): channel.configuration.host
        case .descriptor, .socket: address?.host ?? ""
        }
    }

    /// The peer's port; 0 for a Unix socket.
    func port(at address: SocketAddress?) -> Int {
        switch self {
        case .host(_, let port): port
        case .address: 0
        case .channel(let channel): channel.configuration.port
        case .descriptor, .socket: Int(address?.port ?? 0)
        }
    }

    /// The address of a peer that was connected before the channel was made: of IPv4, even if the socket is
    /// for both families.
    var peerAddress: SocketAddress? {
        switch self {
        case .descriptor(let descriptor): Socket.peerAddress(of: descriptor)?.unmapped
        case .socket(let socket): socket.peerAddress?.unmapped
        case .channel(let channel): channel.remoteAddress
        case .host, .address: nil
        }
    }

    /// The descriptor of a socket that was connected before the channel was made.
    var descriptor: Int32? {
        switch self {
        case .descriptor(let descriptor): descriptor
        case .socket(let socket): socket.descriptor
        case .channel(let channel): channel.descriptor
        case .host, .address: nil
        }
    }

    /// Whether the client owns the socket, which then stays open when the streams are closed (rule ST-40).
    var isClients: Bool { if case .descriptor = self { true } else { false } }

    /// Makes the channel. A socket that was passed in belongs to the channel from then on.
    ///
    /// - Parameter peer: `peerAddress`.
    func makeChannel(
        _ configuration: ChannelConfiguration, at peer: SocketAddress?, through proxy: StreamProxy?
    ) throws(SocketError) -> SocketChannel {
        switch self {
        case .host:
            var configuration = configuration
            configuration.route = proxy?.route(toHost: configuration.host, port: configuration.port)
            return SocketChannel(configuration)
        case .channel(let channel):
            if let seconds = configuration.openingLimit { channel.limitOpening(to: seconds) }
            return channel
        case .address(let address): return SocketChannel(to: address, configuration)
        case .socket(let socket): return SocketChannel(adopting: socket, at: peer, configuration)
        case .descriptor(let descriptor):
            return SocketChannel(adopting: try Socket(adopting: descriptor), at: peer, configuration)
        }
    }
}
