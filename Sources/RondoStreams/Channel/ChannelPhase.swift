internal import RondoCore

/// The stage of a channel's life. Each case carries what exists only in it.
enum ChannelPhase {
    // Indirect, because every channel has the size of the largest case.
    indirect case created(ChannelOpening.StartingPoint)
    case opening(ChannelOpening)
    case open(ChannelTransport)
    case closed

    /// The connected socket, if there is one.
    var transport: ChannelTransport? {
        switch self {
        case .opening(let opening): opening.transport
        case .open(let transport): transport
        case .created, .closed: nil
        }
    }

    /// The connection, while bytes can be moved.
    var openTransport: ChannelTransport? { if case .open(let transport) = self { transport } else { nil } }

    /// TLS with the peer, while bytes can be moved.
    var openEngine: TLSEngine? { if case .open(let transport) = self { transport.engine } else { nil } }

    /// The source of a connection that is open.
    var openSource: RunLoop.Source? { if case .open(let transport) = self { transport.source } else { nil } }

    /// The descriptor of a connection that is open and not secured, otherwise negative.
    var plainDescriptor: Int32 {
        if case .open(let transport) = self, transport.engine == nil {
            transport.socket.descriptor
        } else {
            -1
        }
    }

    /// Whether the connection is being opened, or has accepted bytes that are not sent yet.
    var hasWork: Bool {
        switch self {
        case .created, .closed: false
        case .opening: true
        case .open(let transport): transport.hasUnsentBytes
        }
    }
}
