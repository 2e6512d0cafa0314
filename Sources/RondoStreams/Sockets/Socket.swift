// One non-blocking TCP or Unix socket, and nothing of run loops: the layers above wait for it.
//
// Threads: one thread at a time uses a socket, as its owner sees to; nothing here is locked.
//
// Lifetime: the object owns the descriptor. `close()` is idempotent, and `deinit` closes as well, so that a
// connection attempt can simply be dropped. An owner that has added the descriptor to a run loop removes it
// before closing, because the kernel gives the number to the next socket that is opened.

internal import Glibc
internal import RondoCore

/// Owns one non-blocking descriptor, and closes it.
package final class Socket {
    /// The descriptor's number, or -1 once closed.
    package private(set) var descriptor: Int32
    /// The descriptor's flags from before it was adopted; -1 if this object made it. (Not an optional: with that the
    /// object would have a size class more.)
    private let flags: Int32

    package enum ReadResult: Equatable, Sendable {
        case bytes(Int)
        case wantsRead
        /// The peer has sent its last byte.
        case end
    }

    package enum WriteResult: Equatable, Sendable {
        case bytes(Int)
        case wantsWrite
    }

    /// Takes a connected descriptor over, sets it non-blocking and owns it from now on, unless this throws.
    package init(adopting descriptor: Int32) throws(SocketError) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) >= 0
        else { throw SocketError(code: errno, operation: .open) }
        self.descriptor = descriptor
        self.flags = flags
        setNoDelay()
    }

    /// Owns a descriptor that `accept4` has set up, and asks nothing more of the kernel: TCP_NODELAY is set
    /// with the other options, when the connection is opened.
    init(accepted descriptor: Int32) {
        self.descriptor = descriptor
        flags = -1
    }

    private init(family: Int32, for address: SocketAddress) throws(SocketError) {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        flags = -1
        descriptor = socket(family, Int32(kind), 0)
        guard descriptor >= 0 else { throw SocketError(code: errno, operation: .open, address: address) }
        if family != AF_UNIX { setNoDelay() }
    }

    deinit { close() }

    package func close() {
        guard descriptor >= 0 else { return }
        // Not retried on EINTR: Linux has given the number back already, and another socket may have it by now.
        _ = Glibc.close(descriptor)
        descriptor = -1
    }

    /// Gives the descriptor back, open and as it was taken over: it is no longer this object's.
    package func letGo() {
        if descriptor >= 0, flags >= 0 { _ = fcntl(descriptor, F_SETFL, flags) }
        descriptor = -1
    }

    /// Closes the descriptor, or leaves it open and as it was taken over.
    func close(closesDescriptor: Bool) {
        if closesDescriptor { close() } else { letGo() }
    }

    /// Gives the descriptor to the caller, open and as it is: it is no longer this object's.
    func handOver() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }

    /// Has small writes go out at once. A program that wants larger segments writes larger pieces.
    private func setNoDelay() {
        var on: Int32 = 1
        // Refused for a socket of another kind (a Unix socket taken over): nothing is lost by that.
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}

@available(*, unavailable)
extension Socket: Sendable {}

// MARK: - Connecting

extension Socket {
    /// Begins to connect to `address`. The outcome is known when the descriptor turns writable:
    /// `finishConnecting(to:)` asks for it.
    package static func connecting(
        to address: SocketAddress, from localEnd: ConnectSettings.LocalEnd? = nil
    ) throws(SocketError) -> Socket {
        let socket = try Socket(family: address.family, for: address)
        if let localEnd { try socket.bind(to: localEnd, for: address) }
        guard let code = address.withSockaddr({ socket.connect($0) }) else {
            throw SocketError(code: ENAMETOOLONG, operation: .connect, address: address)
        }
        switch code {
        // A connect that a signal interrupted goes on in the kernel, like every other of a non-blocking
        // socket.
        case 0, EINPROGRESS, EINTR: return socket
        default: throw SocketError(code: code, operation: .connect, address: address)
        }
    }

    private func connect(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
        guard Glibc.connect(descriptor, address, socklen_t(bytes.count)) < 0 else { return 0 }
        return errno
    }

    /// Whether the connection stands; false if the kernel is still trying, an error if it gave up.
    package func finishConnecting(to address: SocketAddress? = nil) throws(SocketError) -> Bool {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) < 0 { code = errno }
        guard code == 0 else { throw SocketError(code: code, operation: .connect, address: address) }
        // SO_ERROR is 0 before there is an outcome, too; only a connected socket has a peer.
        return peerAddress != nil
    }

    package var localAddress: SocketAddress? { address(getsockname) }
    /// Where the socket is connected to; nil before and after.
    package var peerAddress: SocketAddress? { address(getpeername) }

    private func address(
        _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            guard call(descriptor, start, &size) == 0 else { return nil }
            return SocketAddress(sockaddr: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(size))))
        }
    }
}

// MARK: - Bytes

extension Socket {
    /// Reads what has arrived, at most as much as the buffer takes.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> ReadResult {
        try Self.read(descriptor, into: buffer)
    }

    static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SocketError) -> ReadResult {
        guard buffer.count > 0 else { return .bytes(0) }
        switch SocketCalls.receive(descriptor, buffer.baseAddress, buffer.count) {
        case .bytes(0): return .end
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsRead
        case .failed(let code): throw SocketError(code: code, operation: .read, address: nil)
        }
    }

    /// Looks at what has arrived and leaves it there.
    package func peek(into buffer: inout [UInt8]) throws(SocketError) -> ReadResult {
        switch SocketCalls.peek(descriptor, &buffer, buffer.count) {
        case .bytes(0): return .end
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsRead
        case .failed(let code): throw SocketError(code: code, operation: .read, address: nil)
        }
    }

    /// Takes what was seen by `peek`; the buffer is overwritten.
    package func discard(_ count: Int, using buffer: inout [UInt8]) throws(SocketError) {
        var rest = count
        while rest > 0 {
            switch SocketCalls.receive(descriptor, &buffer, min(rest, buffer.count)) {
            case .bytes(0), .wouldBlock: return
            case .bytes(let count): rest -= count
            case .failed(let code): throw SocketError(code: code, operation: .read, address: nil)
            }
        }
    }

    /// The most that is thrown away of a connection that is being closed, in bytes.
    static let discardLimit = 262_144

    enum Discarded {
        /// The peer may send more.
        case more
        /// It has ended, or the limit is reached.
        case all
    }

    /// Throws away what has arrived. A socket that is closed with unread bytes resets the connection, and
    /// forgets what it has not sent yet.
    ///
    /// - Parameter total: What was thrown away so far, which this adds to; no more than `limit`.
    func discardArrived(upTo limit: Int, _ total: inout Int) -> Discarded {
        var piece = [UInt8](repeating: 0, count: 16_384)
        while total < limit {
            switch SocketCalls.receive(descriptor, &piece, piece.count) {
            case .bytes(0), .failed: return .all
            case .bytes(let count): total += count
            case .wouldBlock: return .more
            }
        }
        return .all
    }

    /// Hands bytes to the kernel, perhaps fewer than given.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> WriteResult {
        try Self.write(bytes, to: descriptor)
    }

    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SocketError)
        -> WriteResult
    {
        guard bytes.count > 0 else { return .bytes(0) }
        switch SocketCalls.send(descriptor, bytes.baseAddress, bytes.count) {
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsWrite
        case .failed(let code): throw SocketError(code: code, operation: .write, address: nil)
        }
    }

    /// Tells the peer that no more bytes will come. A peer that has gone already needs not be told.
    package func shutdownWriting() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Whether a read would answer at once, be it with bytes, the end or an error.
    package func isReadable() -> Bool {
        descriptor >= 0 && SocketCalls.poll(descriptor, for: POLLIN) != 0
    }

    /// Whether a connection that was kept idle can be used again: it is open and the peer has sent nothing
    /// unasked. (Over TLS, session tickets may come unasked: `TLSEngine.isQuiet()` knows them.)
    package func isQuiet() -> Bool {
        descriptor >= 0 && !isReadable()
    }
}
