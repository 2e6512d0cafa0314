internal import Glibc
internal import RondoCore

/// A connection that a peer has made to a socket port: its bytes become messages.
///
/// `@unchecked Sendable`: used only under the lock of the `PortReceiver` that has it, but for `source`, which is
/// immutable, and `close()`, which is called when the receiver does not have it any more.
final class PortConnection: @unchecked Sendable {
    /// The most that is read for one readiness of the socket, in bytes.
    private static let chunkSize = 65_536

    let number: Int
    let socket: Socket
    /// Nil: a Unix socket without a name.
    let peer: SocketAddress?
    /// This end.
    let local: SocketAddress?
    let source: RunLoop.Source
    var reader = WireReader()
    /// How many bytes of the reader's are counted among the unfinished ones of all connections.
    var counted = 0
    /// The number of the last read among those of all connections.
    var lastHeard: UInt64 = 0
    /// Nothing is read until the port's queue has room.
    var isHeldBack = false
    /// The port for answers that the peer has named last. It is kept as long as the peer's connection, so that all
    /// answers go over one connection, in order.
    var answerPort: (signature: PortSignature, port: Port)?

    init(_ socket: Socket, number: Int, source: RunLoop.Source) {
        self.socket = socket
        self.number = number
        self.source = source
        peer = socket.peerAddress
        local = socket.localAddress
        source.label = "connection of a socket port\(peer.map { " from \($0)" } ?? "")"
    }

    deinit { close() }

    func close() {
        // Before the descriptor is closed: its number may be another one's at once (rule SRC-27).
        source.invalidate()
        socket.close()
    }

    /// Reads the bytes that are there, once.
    ///
    /// - Returns: False: the peer has ended the connection, or it has failed.
    func read() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.chunkSize, alignment: 16) { buffer in
            switch SocketCalls.receive(socket.descriptor, buffer.baseAddress, buffer.count) {
            case .bytes(0), .failed: return false
            case .wouldBlock: return true
            case .bytes(let count):
                reader.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                return true
            }
        }
    }
}
