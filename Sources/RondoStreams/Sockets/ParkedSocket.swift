internal import Glibc
internal import RondoCore

/// An open connection of which nothing is kept but its descriptor, until a channel is made of it again.
///
/// A channel with its source and all that belongs to them is some 700 bytes, of which a connection that waits
/// for its next use needs none. This is four, and an array holds them in place.
///
/// It owns the descriptor: its owner either makes a channel of it or closes it, once.
package struct ParkedSocket: Sendable {
    package let descriptor: Int32

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    package func close() {
        // Not retried on EINTR; see `Socket.close()`.
        _ = Glibc.close(descriptor)
    }

    /// Whether the peer has neither ended the connection nor said anything.
    package var isQuiet: Bool { SocketCalls.poll(descriptor, for: POLLIN) == 0 }
}

extension SocketChannel {
    /// Ends the channel and keeps the connection. To be called in no loop.
    ///
    /// - Returns: Nil, and nothing has changed, where there is more to it than a descriptor: it is secured, or
    ///   not open, goes by a proxy's tunnel, or has still something to send.
    package func park() -> ParkedSocket? { handOver().map { ParkedSocket($0) } }

    /// The channel over a connection that was parked, open from the start. `configuration` has neither TLS nor
    /// a route, as that of the channel before had none.
    package convenience init(resuming parked: ParkedSocket, _ configuration: Configuration) {
        let socket = Socket(accepted: parked.descriptor)
        self.init(adopting: socket, configuration)
        resume(socket)
    }
}
