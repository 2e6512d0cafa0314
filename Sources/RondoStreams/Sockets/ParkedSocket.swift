internal import Glibc
internal import RondoCore

/// An open connection of which only the descriptor is kept, until a channel is made for it again.
///
/// A channel with its source and everything else takes some 700 bytes, which an idle connection does not
/// need. This takes four, and an array stores it in place.
///
/// It owns the descriptor: its user must either make a channel of it or close it, once.
package struct ParkedSocket: Sendable {
    package let descriptor: Int32

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    package func close() {
        // Not retried on EINTR; see `Socket.close()`.
        _ = Glibc.close(descriptor)
    }

    /// Whether the peer has neither ended the connection nor sent anything.
    package var isQuiet: Bool { SocketCalls.poll(descriptor, for: POLLIN) == 0 }
}

extension SocketChannel {
    /// Ends the channel and keeps the connection. The channel must be in no loop.
    ///
    /// - Returns: Nil, with nothing changed, if the connection is more than an open plain socket: it is
    ///   secured, not open, configured beyond host and port (a proxy, for example), or has something left to
    ///   send.
    package func park() -> ParkedSocket? { handOver().map { ParkedSocket($0) } }

    /// Makes a channel, open from the start, for a parked connection. Like the parked channel's,
    /// `configuration` must have neither TLS nor a route.
    package convenience init(resuming parked: ParkedSocket, _ configuration: Configuration) {
        let socket = Socket(accepted: parked.descriptor)
        self.init(adopting: socket, configuration)
        resume(socket)
    }
}
