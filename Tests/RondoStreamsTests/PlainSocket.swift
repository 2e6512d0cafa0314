import RondoCore
import RondoTestSupport

/// The other ends of our streams: blocking sockets, with none of our code.
enum PlainSocket {
    /// Two connected Unix sockets.
    static func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0 else { throw PeerIsSilent() }
        return (ends[0], ends[1])
    }

    /// A connection to a port of 127.0.0.1.
    static func connected(to port: Int) throws -> Int32 {
        let (descriptor, status) = connect(socket(AF_INET, closeOnExec, 0), to: port)
        guard status == 0 else {
            close(descriptor)
            throw PeerIsSilent()
        }
        return descriptor
    }

    /// The same, without waiting for it.
    static func connecting(to port: Int) throws -> Int32 {
        connect(socket(AF_INET, closeOnExec | Int32(SOCK_NONBLOCK.rawValue), 0), to: port).0
    }

    private static func connect(_ descriptor: Int32, to port: Int) -> (Int32, Int32) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return (descriptor, status)
    }

    /// A connection to a Unix socket.
    ///
    /// - Parameter waits: Whether it waits for room in the server's queue.
    static func connected(toPath path: String, waits: Bool = true) throws -> Int32 {
        let flags = waits ? closeOnExec : closeOnExec | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, flags, 0)
        guard withUnixAddress(path, { Foundation.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            throw PeerIsSilent()
        }
        return descriptor
    }

    /// A socket that is bound to a path, and listens unless it is to be left over from a program that has
    /// ended.
    static func listening(atPath path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, closeOnExec, 0)
        guard withUnixAddress(path, { bind(descriptor, $0, $1) }) == 0, listen(descriptor, 8) == 0 else {
            close(descriptor)
            throw PeerIsSilent()
        }
        return descriptor
    }

    private static func withUnixAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        // A name in the abstract space is as long as it is.
        let size = path.utf8.first == 0 ? 2 + path.utf8.count : MemoryLayout<sockaddr_un>.size
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(size)) }
        }
    }

    /// Runs `body` with a connection on a thread of its own, and closes it then.
    static func serve(_ descriptor: Int32, _ body: @escaping @Sendable (Int32) -> Void) {
        Thread.detachNewThread {
            body(descriptor)
            close(descriptor)
        }
    }

    static func send(_ bytes: [UInt8], on descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Returns the bytes that come until the peer closes.
    static func receiveAll(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            guard count > 0 else { return bytes }
            bytes += piece.prefix(count)
        }
    }

    /// Sends back what comes, until the peer's end.
    static func echo(_ descriptor: Int32) {
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            guard count > 0 else { return }
            send(Array(piece.prefix(count)), on: descriptor)
        }
    }

    /// Closes with a RST in place of a FIN.
    static func reset(_ descriptor: Int32) {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }
}

/// Serves one connection to a Unix socket on a thread of its own.
final class UnixServer {
    let path: String
    private let descriptor: Int32

    init(path: String = temporaryPath(), _ serve: @escaping @Sendable (Int32) -> Void) throws {
        self.path = path
        let descriptor = try PlainSocket.listening(atPath: path)
        self.descriptor = descriptor
        Thread.detachNewThread {
            let peer = accept(descriptor, nil, nil)
            close(descriptor)
            guard peer >= 0 else { return }
            _ = fcntl(peer, F_SETFD, FD_CLOEXEC)
            serve(peer)
            close(peer)
        }
    }

    deinit {
        // The thread accepts once more, and so no longer waits, if no client has come.
        if let peer = try? PlainSocket.connected(toPath: path) { close(peer) }
        unlink(path)
    }
}
