// One non-blocking TCP or Unix socket, without any run loop: the layers above wait for it.
//
// Threads: one thread at a time uses a socket, which its owner ensures; there is no lock here.
//
// Lifetime: the object owns the descriptor. `close()` is idempotent, and `deinit` closes as well, so that an
// attempt to connect can simply be released. An owner that has added the descriptor to a run loop must remove
// it before closing, because the kernel gives the number to the next file that is opened.

internal import Glibc
internal import RondoCore

/// Owns one non-blocking descriptor, and closes it.
package final class Socket {
    /// The descriptor's number, or -1 once closed.
    package private(set) var descriptor: Int32
    /// The flags of the open file before the descriptor was adopted, with `O_CLOEXEC`, which is the
    /// descriptor's own; -1 if this object made it. (An optional would put the object into the next size
    /// class.)
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

        /// The number of bytes that were accepted.
        var count: Int { if case .bytes(let count) = self { count } else { 0 } }
    }

    /// Takes over a connected descriptor and makes it non-blocking. If this throws, the caller still owns it.
    package init(adopting descriptor: Int32) throws(SocketError) {
        let (flags, own) = (fcntl(descriptor, F_GETFL), fcntl(descriptor, F_GETFD))
        guard flags >= 0, own >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) >= 0
        else { throw SocketError(code: errno, operation: .open) }
        self.descriptor = descriptor
        self.flags = own & FD_CLOEXEC == 0 ? flags : flags | O_CLOEXEC
        setNoDelay()
    }

    /// Takes over a descriptor that does not block, without a system call. One that `accept4` has made has
    /// the options of the listening socket.
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
        // Not retried on EINTR: Linux has already freed the number, and another file may have it by now.
        _ = Glibc.close(descriptor)
        descriptor = -1
    }

    /// Gives the descriptor up, open and with its former flags.
    package func relinquishDescriptor() {
        if descriptor >= 0, flags >= 0 {
            _ = fcntl(descriptor, F_SETFL, flags)
            if flags & O_CLOEXEC == 0 { _ = fcntl(descriptor, F_SETFD, 0) }
        }
        descriptor = -1
    }

    /// Closes the descriptor, or gives it up open and with its former flags.
    func close(closesDescriptor: Bool) {
        if closesDescriptor { close() } else { relinquishDescriptor() }
    }

    /// Passes the descriptor to the caller, open and with its current flags.
    func handOver() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }

    /// Makes small writes go out at once. A program that wants larger segments writes larger pieces.
    private func setNoDelay() {
        var on: Int32 = 1
        // Fails for a socket of another kind (an adopted Unix socket), which needs no such option.
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}

@available(*, unavailable)
extension Socket: Sendable {}

// MARK: - Connecting

extension Socket {
    /// Starts to connect to `address`. When the descriptor becomes writable, `finishConnecting(to:)` returns
    /// the result.
    package static func connecting(
        to address: SocketAddress, from localEnd: ConnectSettings.LocalEnd? = nil
    ) throws(SocketError) -> Socket {
        let socket = try Socket(family: address.family, for: address)
        if let localEnd { try socket.bind(to: localEnd, for: address) }
        guard let code = address.withSockaddr({ socket.connect($0) }) else {
            throw SocketError(code: ENAMETOOLONG, operation: .connect, address: address)
        }
        switch code {
        // A connect that a signal has interrupted continues in the kernel, as always with a non-blocking
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

    /// Whether the connection is established; false while the kernel is still trying, an error if it has
    /// failed.
    package func finishConnecting(to address: SocketAddress? = nil) throws(SocketError) -> Bool {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) < 0 { code = errno }
        guard code == 0 else { throw SocketError(code: code, operation: .connect, address: address) }
        // SO_ERROR is also 0 before there is a result; only a connected socket has a peer.
        return peerAddress != nil
    }

    package var localAddress: SocketAddress? { .of(descriptor, getsockname) }
    /// The address that the socket is connected to; nil before and after.
    package var peerAddress: SocketAddress? { .of(descriptor, getpeername) }
}

// MARK: - Bytes

extension Socket {
    /// Reads the bytes that have arrived, at most as many as the buffer holds.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> ReadResult {
        try Self.read(descriptor, into: buffer)
    }

    /// - Parameter peeks: Copies the bytes without consuming them.
    static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, peeks: Bool = false
    ) throws(SocketError) -> ReadResult {
        guard buffer.count > 0 else { return .bytes(0) }
        let outcome =
            peeks
            ? SocketCalls.peek(descriptor, buffer.baseAddress, buffer.count)
            : SocketCalls.receive(descriptor, buffer.baseAddress, buffer.count)
        switch outcome {
        case .bytes(0): return .end
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsRead
        case .failed(let code): throw SocketError(code: code, operation: .read, address: nil)
        }
    }

    /// Copies the bytes that have arrived without consuming them.
    package func peek(into buffer: inout [UInt8]) throws(SocketError) -> ReadResult {
        switch SocketCalls.peek(descriptor, &buffer, buffer.count) {
        case .bytes(0): return .end
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsRead
        case .failed(let code): throw SocketError(code: code, operation: .read, address: nil)
        }
    }

    /// Consumes bytes that `peek` has returned; the buffer is overwritten.
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

    /// The most bytes that are discarded on a connection that is being closed.
    static let discardLimit = 262_144

    enum Discarded {
        /// The peer may send more.
        case more
        /// The peer has ended its side, or the limit is reached.
        case all
    }

    /// Discards the bytes that have arrived. Closing a socket with unread bytes would reset the connection
    /// and discard the bytes that it has not sent yet.
    ///
    /// - Parameter total: The number of bytes discarded so far, which this updates; reading stops once it
    ///   reaches `limit`, which the last read may exceed.
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

    /// Writes bytes, perhaps fewer than given.
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

    /// Ends the stream to the peer (FIN). An error means that the peer is gone, and is ignored.
    package func shutdownWriting() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Whether a read would return at once, with bytes, the end or an error.
    package func isReadable() -> Bool {
        descriptor >= 0 && SocketCalls.poll(descriptor, for: POLLIN) != 0
    }

    /// Whether an idle connection can be used again: it is open and the peer has sent nothing unasked. (Over
    /// TLS, session tickets may arrive unasked: `TLSEngine.checkQuiet()` handles them.)
    package func isQuiet() -> Bool {
        descriptor >= 0 && !isReadable()
    }
}
