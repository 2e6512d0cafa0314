internal import Glibc
internal import RondoCore

/// A connection that a peer has made to a socket port; turns its bytes into messages.
///
/// `@unchecked Sendable`: used only under the lock of the `PortReceiver` that has it, except for `source`,
/// which is immutable, and `close()`, which is called after the receiver has removed it.
final class PortConnection: @unchecked Sendable {
    /// The most bytes that are read for one readiness of the socket.
    private static let chunkSize = 65_536

    let number: Int
    let socket: Socket
    /// Nil for a Unix socket without a name.
    let peer: SocketAddress?
    /// The local address.
    let local: SocketAddress?
    let source: RunLoop.Source
    private var reader = WireReader()
    /// The reader's bytes that are included in the count of unfinished bytes of all connections.
    private(set) var counted = 0
    /// The number of the last read of this connection; the reads of all connections are numbered in one
    /// sequence.
    private(set) var lastRead: UInt64 = 0
    /// True if nothing is read until the port's queue has room.
    private(set) var isHeldBack = false
    /// The port for replies that the peer has named last. It lives as long as the peer's connection, so that
    /// all replies go over one connection, in order.
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
        // Before the descriptor is closed, whose number another file may get at once (rule SRC-27).
        source.invalidate()
        socket.close()
    }

    // MARK: - For `PortConnections`

    /// Records that the connection was read, with the number of that read.
    func noteRead(_ number: UInt64) { lastRead = number }

    /// Updates the count of this connection's unfinished bytes.
    ///
    /// - Returns: The difference from the last count.
    func countUnfinished() -> Int {
        let more = reader.count - counted
        counted += more
        return more
    }

    /// - Returns: The bytes that were counted; the count is 0 from here on.
    func endCounting() -> Int {
        defer { counted = 0 }
        return counted
    }

    func holdBack() { isHeldBack = true }
    func resume() { isHeldBack = false }

    // MARK: - Messages

    /// The port for replies to `signature`; nil if the message names none.
    func replyPort(for signature: PortSignature?) -> Port? {
        if signature != replyPort?.signature {
            replyPort = signature.map { ($0, SocketPort(remote: $0)) }
        }
        return replyPort?.port
    }

    func receive(_ bytes: UnsafeRawBufferPointer) { reader.receive(bytes) }

    /// The next whole message of the bytes read so far; nil: there is none.
    func nextMessage(maximum: Int) throws(WireError) -> WireMessage? { try reader.next(maximum: maximum) }

    /// Reads the bytes that have arrived, with one call.
    ///
    /// - Returns: False if the peer has ended the connection, or it has failed.
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
