internal import Glibc
internal import RondoCore

/// The descriptor of a `CFSocket`, with the system calls on it, none of which waits. It does not own the
/// descriptor.
struct NativeSocket {
    /// The most connections that the kernel holds until they are accepted.
    private static let backlog: Int32 = 256
    /// The most bytes that one read of a connection returns.
    private static let chunkSize = 65_536

    let descriptor: Int32
    /// `SOCK_STREAM` or another; 0 if the descriptor is no socket.
    let kind: Int32
    /// The identity of the open file, by which this object notices that other code has closed the descriptor
    /// (rule SRC-27).
    private let file: FileIdentity

    /// Nil if there is no such descriptor.
    init?(_ descriptor: Int32) {
        guard let file = FileIdentity(descriptor: descriptor) else { return nil }
        self.descriptor = descriptor
        self.file = file
        kind = Self.option(SO_TYPE, of: descriptor) ?? 0
    }

    /// Makes a descriptor for a new socket; -1 on failure. Arguments of 0 or less mean TCP over IPv4.
    static func make(_ family: Int32, _ kind: Int32, _ number: Int32) -> Int32 {
        let kind = kind > 0 ? kind : Int32(SOCK_STREAM.rawValue)
        return socket(family > 0 ? family : PF_INET, kind | Int32(SOCK_CLOEXEC.rawValue), max(0, number))
    }

    // MARK: - State

    /// Whether other code has closed the descriptor. Its number may refer to another file by now.
    var isLost: Bool { FileIdentity(descriptor: descriptor) != file }

    /// Whether the socket is connection-oriented: its messages or bytes are ordered and have an end.
    var isConnection: Bool {
        kind == Int32(SOCK_STREAM.rawValue) || kind == Int32(SOCK_SEQPACKET.rawValue)
    }

    /// The phase of a new object. A broken connection has no peer, and neither has a socket that was never
    /// connected. But only the broken one is readable, and its end must be reported; so must the failure of
    /// an attempt of the program's own.
    func initialPhase(_ types: CFSocketCallBackType) -> SocketCallBacks.Phase {
        let found = phase(types)
        guard found == .idle, isReadable else { return found }
        return types.contains(.connectCallBack) ? .connecting(threadWaits: false) : .ready
    }

    /// The phase that the kernel knows. A connection that the program has made itself is reported as well,
    /// because the program may wait for the result of an attempt of its own.
    func phase(_ types: CFSocketCallBackType) -> SocketCallBacks.Phase {
        let tells = types.contains(.connectCallBack) && isConnection && peerAddress != nil
        return tells ? .connecting(threadWaits: false) : phase
    }

    private var phase: SocketCallBacks.Phase {
        guard isConnection, Self.option(SO_ACCEPTCONN, of: descriptor) != 1, peerAddress == nil else {
            return .ready
        }
        return isConnecting ? .connecting(threadWaits: false) : .idle
    }

    /// Whether there are bytes to read, or an end or an error. A socket that was never connected has none of
    /// them.
    private var isReadable: Bool { SocketCalls.poll(descriptor, for: POLLIN) & POLLIN != 0 }

    var address: Data? { Self.address(of: descriptor, getsockname) }
    var peerAddress: Data? { Self.address(of: descriptor, getpeername) }

    /// Reads SO_ERROR, which clears it: 0 or an errno.
    func takeError() -> Int32 { Self.option(SO_ERROR, of: descriptor) ?? EBADF }

    /// The result of connecting: 0 or an errno, which is ENOTCONN if the kernel's error must stay unread; nil
    /// while there is none.
    func outcomeOfConnecting(leavesErrors: Bool) -> Int32? {
        if peerAddress != nil { return 0 }
        let code = leavesErrors ? 0 : takeError()
        if code != 0 { return code }
        return isConnecting ? nil : ENOTCONN
    }

    /// Whether TCP has sent its first segment and waits for the answer.
    private var isConnecting: Bool {
        // The first byte of `tcp_info` is the state; 2 is SYN_SENT.
        var state: UInt8 = 0
        var size = socklen_t(1)
        return getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &state, &size) == 0 && state == 2
    }

    private static func option(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : nil
    }

    /// The unparsed result of `getpeername` or `getsockname` for a descriptor; nil if the call fails.
    private static func address(
        of descriptor: Int32,
        _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Data? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            guard let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                call(descriptor, start, &size) == 0
            else { return nil }
            return Data(bytes.prefix(Int(size)))
        }
    }

    // MARK: - Blocking

    /// - Returns: Whether it was blocking before.
    func setNonBlocking() -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, flags & O_NONBLOCK == 0 else { return false }
        return fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0
    }

    func setBlocking() { Self.setBlocking(descriptor) }

    private static func setBlocking(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    }

    // MARK: - Calls

    /// Wakes the threads that wait for the socket, whatever the peer does.
    func shutDown() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    func close() {
        // Not retried on EINTR: Linux has already freed the number.
        _ = Glibc.close(descriptor)
    }

    /// Binds the socket, and makes a connection-oriented one listen; returns whether that has succeeded.
    func bindAndListen(at address: Data) -> Bool {
        guard Self.withSockaddr(address, { bind(descriptor, $0, $1) }) == 0 else { return false }
        return !isConnection || listen(descriptor, Self.backlog) == 0
    }

    /// Starts to connect.
    ///
    /// - Returns: 0, EINPROGRESS or another errno.
    func connect(to address: Data) -> Int32 {
        // Linux reports the success of an attempt in the background once more.
        if isConnection, peerAddress != nil { return EISCONN }
        let wasBlocking = setNonBlocking()
        defer { if wasBlocking { setBlocking() } }
        return Self.withSockaddr(address) { Glibc.connect(descriptor, $0, $1) == 0 ? 0 : errno }
    }

    /// - Parameter address: The destination; nil or empty: the address that the socket is connected to.
    func send(_ bytes: Data, to address: Data?) -> SocketCalls.Outcome {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        return bytes.withUnsafeBytes { buffer in
            guard let address, !address.isEmpty else {
                return SocketCalls.retrying {
                    Glibc.send(descriptor, buffer.baseAddress, buffer.count, flags)
                }
            }
            return Self.withSockaddr(address) { start, size in
                SocketCalls.retrying {
                    sendto(descriptor, buffer.baseAddress, buffer.count, flags, start, size)
                }
            }
        }
    }

    enum Accepted {
        /// A blocking descriptor, as `accept` returns it, and its peer's address.
        case connection(Int32, Data)
        case none
        /// The connection stays in the kernel's queue, because descriptors or memory have run out; or the
        /// socket does not listen.
        case failed
    }

    func accept() -> Accepted {
        let accepted = acceptConnection(on: descriptor)
        guard accepted < 0 else {
            Self.setBlocking(accepted)
            return .connection(accepted, Self.address(of: accepted, getpeername) ?? Data())
        }
        switch -accepted {
        // accept(2): no connection is left, or a connection was lost.
        case EAGAIN, EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET,
            EHOSTUNREACH, ENETUNREACH, ETIMEDOUT:
            return .none
        default: return .failed
        }
    }

    enum Received {
        /// A datagram, or bytes of a connection, with the address of the peer.
        case bytes(Data, Data)
        case none
        case end(Data)
    }

    func receive() -> Received {
        var size = Self.chunkSize
        if kind != 0, kind != Int32(SOCK_STREAM.rawValue) {
            // A message is received as a whole; those of Unix sockets can be longer than the chunk.
            var next: Int32 = 0
            if ioctl(descriptor, UInt(FIONREAD), &next) == 0 { size = max(size, Int(next)) }
        }
        return withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { buffer in
            let (outcome, sender) = SocketCalls.receive(descriptor, into: buffer)
            // For a connection the kernel returns no sender.
            let address = sender.isEmpty ? peerAddress ?? sender : sender
            switch outcome {
            case .wouldBlock: return .none
            case .bytes(let count) where count > 0 || !isConnection:
                return .bytes(Data(UnsafeRawBufferPointer(rebasing: buffer[..<count])), address)
            case .bytes: return .end(address)
            case .failed(let code):
                // On a datagram socket, the error of a datagram sent earlier. All other errors are the end,
                // or would come again and again.
                return isConnection || code == ENOTSOCK || code == EBADF ? .end(address) : .none
            }
        }
    }

    private static func withSockaddr<Result>(
        _ address: Data, _ body: (UnsafePointer<sockaddr>?, socklen_t) -> Result
    ) -> Result {
        address.withUnsafeBytes { bytes in
            // The kernel copies the address, whatever its alignment, and refuses one that is too short or too
            // long.
            body(bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(clamping: bytes.count))
        }
    }
}
