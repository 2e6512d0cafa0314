/// An event that a channel reports to its owner, in a pass of a scheduled mode.
package enum ChannelEvent: Equatable, Sendable {
    case resolving(host: String)
    case connecting(SocketAddress)
    case connected(SocketAddress)
    /// Bytes of a proxy have come; it has not let the connection through yet.
    case negotiating
    /// A TLS handshake begins. Reported once for each TLS session: the proxy's first, then the host's; and by
    /// a later `secure(_:)` too.
    case securing
    /// Reported once for each TLS session, after its `securing`.
    case secured(version: String, cipher: String, subject: String)
    /// Bytes can be read and written from now on. Reported once: a later `secure(_:)` reports only `securing`
    /// and `secured`.
    case open
    /// A read may find bytes or the end. Reported only while `wantsRead`, in every pass while bytes wait.
    case readable
    /// A write may be accepted; reported only while `wantsWrite`.
    case writable
    /// The last event. The descriptor is closed already.
    case failed(ChannelError)
}

/// The result of a read from a channel.
package enum ChannelReadResult: Equatable, Sendable {
    case bytes(Int)
    case wouldBlock
    /// The peer has ended its side in an orderly way: FIN, or close_notify over TLS.
    case end
    /// TLS only: a FIN without close_notify, which an attacker in between could have sent.
    case truncated

    init(_ result: Socket.ReadResult) {
        self =
            switch result {
            case .bytes(let count): .bytes(count)
            case .wantsRead: .wouldBlock
            case .end: .end
            }
    }
}
