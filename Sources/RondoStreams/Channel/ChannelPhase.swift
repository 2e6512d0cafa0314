/// The state of a channel between its creation and its end; each case carries the data that exists only in
/// it.
enum ChannelPhase {
    // Indirect, because every channel has the size of the largest case.
    indirect case created(ChannelOpening.Origin)
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

    /// The descriptor of an open connection without TLS, otherwise -1.
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

    /// The number of bytes that a proxy has sent in the negotiation so far; 0 outside of it.
    var negotiatedBytes: Int { if case .opening(let opening) = self { opening.negotiatedBytes } else { 0 } }
}
