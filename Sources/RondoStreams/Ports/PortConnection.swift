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
    private var reader = WireReader()
    /// How many bytes of the reader's are counted among the unfinished ones of all connections.
    private(set) var counted = 0
    /// The number of the last read among those of all connections.
    private(set) var lastRead: UInt64 = 0
    /// Nothing is read until the port's queue has room.
    private(set) var isHeldBack = false
    /// The port for replies that the peer has named last. It is kept as long as the peer's connection, so that all
    /// replies go over one connection, in order.
    private var replyPort: (signature: PortSignature, port: Port)?

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

    // MARK: - For `PortConnections`

    /// The connection was read, as the read with this number of all connections'.
    func noteRead(_ number: UInt64) { lastRead = number }

    /// Counts the bytes of the message that is not whole.
    ///
    /// - Returns: How many more they are than at the last count.
    func countUnfinished() -> Int {
        let more = reader.count - counted
        counted += more
        return more
    }

    /// - Returns: How many bytes were counted, and are not from here on.
    func endCounting() -> Int {
        defer { counted = 0 }
        return counted
    }

    func holdBack() { isHeldBack = true }
    func goOn() { isHeldBack = false }

    // MARK: - Messages

    /// The port for replies to `signature`; nil: the message names none.
    func replyPort(for signature: PortSignature?) -> Port? {
        if signature != replyPort?.signature {
            replyPort = signature.map { ($0, SocketPort(remote: $0)) }
        }
        return replyPort?.port
    }

    func receive(_ bytes: UnsafeRawBufferPointer) { reader.receive(bytes) }

    /// The next whole message of the bytes that were read; nil: there is none.
    func nextMessage(maximum: Int) throws(WireError) -> WireMessage? { try reader.next(maximum: maximum) }

    /// Reads the bytes that are there, once.
    ///
    /// - Returns: False: the peer has ended the connection, or it has failed.
    func read() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.chunkSize, alignment: 16) { buffer in
            switch SocketCalls.receive(socket.descriptor, buffer.baseAddress, buffer.count) {
            case .bytes(0), .failed: return false
            case .wouldBlock: return true
            case .bytes(let count):
                receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                return true
            }
        }
    }
}
