internal import RondoCore

/// What the connection of two streams is to, or has come from.
enum SocketTarget {
    case host(String, port: Int)
    // Indirect: larger than the others, and seldom.
    /// A Unix socket's.
    indirect case address(SocketAddress)
    /// A connected socket of the client's, which closes it unless told otherwise (rule ST-40).
    case descriptor(Int32)
    /// One that a listener has accepted.
    case socket(Socket)
    /// A connection that is open already, and belongs to nothing else.
    case channel(SocketChannel)

    /// The peer's host; `address` is the peer's address as far as the connection knows it.
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

    /// The address of a peer that was connected before there was a channel.
    var peerAddress: SocketAddress? {
        switch self {
        case .descriptor(let descriptor): Socket.peerAddress(of: descriptor)
        case .socket(let socket): socket.peerAddress
        case .channel(let channel): channel.remoteAddress
        case .host, .address: nil
        }
    }

    /// The socket that was connected before there was a channel.
    var descriptor: Int32? {
        switch self {
        case .descriptor(let descriptor): descriptor
        case .socket(let socket): socket.descriptor
        case .channel(let channel): channel.descriptor
        case .host, .address: nil
        }
    }

    /// Whether the socket is the client's, and stays open when the streams are closed (rule ST-40).
    var isClients: Bool { if case .descriptor = self { true } else { false } }

    /// A channel to it. What the client has handed in belongs to the channel from then on.
    func makeChannel(
        _ configuration: ChannelConfiguration, through proxy: StreamProxy?
    ) throws(SocketError) -> SocketChannel {
        switch self {
        case .host:
            var configuration = configuration
            configuration.route = proxy?.route(toHost: configuration.host, port: configuration.port)
            return SocketChannel(configuration)
        case .channel(let channel): return channel
        case .address(let address): return SocketChannel(to: address, configuration)
        case .socket(let socket): return SocketChannel(adopting: socket, configuration)
        case .descriptor(let descriptor):
            return SocketChannel(adopting: try Socket(adopting: descriptor), configuration)
        }
    }
}
