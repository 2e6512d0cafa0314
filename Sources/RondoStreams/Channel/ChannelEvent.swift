/// What a channel tells its owner, in a pass of a scheduled mode.
package enum ChannelEvent: Equatable, Sendable {
    case resolving(host: String)
    case connecting(SocketAddress)
    case connected(SocketAddress)
    /// A proxy has said something, and has still to let the connection through.
    case negotiating
    /// Of each TLS there is: that with a proxy comes before that with the host.
    case secured(version: String, cipher: String, subject: String)
    /// Bytes can be read and written from here on. Once: not again after a later `secure(_:)`, which ends
    /// with `secured`.
    case open
    /// A read may find something; only while `wantsRead`, in every pass while bytes wait.
    case readable
    /// A write may be taken; only while `wantsWrite`.
    case writable
    /// The last event. The descriptor is closed already.
    case failed(ChannelError)
}

/// What a read of a channel has found.
package enum ChannelReadResult: Equatable, Sendable {
    case bytes(Int)
    case wouldBlock
    /// The peer has ended its side in order: FIN, or close_notify over TLS.
    case end
    /// TLS only: FIN without close_notify, which a machine in between could have sent.
    case truncated
}
