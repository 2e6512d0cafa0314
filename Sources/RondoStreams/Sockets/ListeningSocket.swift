// A listening socket: making, binding and accepting, without any run loop.

internal import Glibc
internal import RondoCore

/// Owns a non-blocking listening descriptor, and the file of a Unix socket that it has made.
final class ListeningSocket {
    /// The descriptor's number, or -1 once closed.
    private(set) var descriptor: Int32
    /// The address that it listens on, with the port that the kernel has chosen if 0 was asked for.
    private(set) var address: SocketAddress
    /// The identity of the file that was made, so that no other file is removed in its place.
    private var file: FileIdentity?

    enum Accepted {
        /// With the peer's address.
        case connection(Socket, from: SocketAddress?)
        /// No connection waits to be accepted.
        case none
        /// The connection was gone before it was accepted, or the network has a temporary fault.
        case lost
        /// Descriptors or memory have run out (the errno); the connection still waits.
        case exhausted(Int32)
        case failed(Int32)
    }

    init(
        _ address: SocketAddress, _ options: StreamListener.Configuration
    ) throws(SocketError) {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        descriptor = socket(address.family, Int32(kind), 0)
        self.address = address
        guard descriptor >= 0 else { throw SocketError(code: errno, operation: .open, address: address) }
        do throws(SocketError) {
            try prepare(options)
            try bindOrReplace(options)
            guard listen(descriptor, Int32(clamping: options.backlog)) == 0 else {
                throw SocketError(code: errno, operation: .listen, address: address)
            }
        } catch {
            close()
            throw error
        }
        self.address = SocketAddress.of(descriptor, getsockname) ?? address
    }

    /// Takes over a listening descriptor and makes it non-blocking.
    init(adopting descriptor: Int32) throws(SocketError) {
        self.descriptor = descriptor
        address = SocketAddress.of(descriptor, getsockname) ?? .unix(path: "")
        do throws(SocketError) {
            try SocketCalls.setNonBlocking(descriptor, for: .listen)
        } catch {
            // The caller still owns the descriptor.
            self.descriptor = -1
            throw error
        }
    }

    deinit { close() }

    /// Closes the descriptor and removes the socket's file, if it is still the one that was made here.
    func close() {
        guard descriptor >= 0 else { return }
        file.take()?.remove(of: address)
        // Not retried on EINTR: Linux has already freed the number.
        _ = Glibc.close(descriptor)
        descriptor = -1
    }

    // MARK: - Making

    private func prepare(_ options: StreamListener.Configuration) throws(SocketError) {
        guard address.family != AF_UNIX else { return }
        if options.reusesAddress { try set(SOL_SOCKET, SO_REUSEADDR, 1) }
        if options.sharesPort { try set(SOL_SOCKET, SO_REUSEPORT, 1) }
        if address.family == AF_INET6 {
            try set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.acceptsIPv4 ? 0 : 1)
        }
        // The kernel passes them on to the sockets that it accepts.
        Socket.apply(options.socketOptions, to: descriptor)
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) throws(SocketError) {
        var value = value
        guard setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw SocketError(code: errno, operation: .listen, address: address)
        }
    }

    private func bindOrReplace(_ options: StreamListener.Configuration) throws(SocketError) {
        var code = bind()
        if code == EADDRINUSE, options.replacesStaleSocket, case .unix(let path) = address, isStale(path) {
            _ = unlink(path)
            code = bind()
        }
        guard code == 0 else { throw SocketError(code: code, operation: .listen, address: address) }
        guard case .unix(let path) = address, path.utf8.first != 0 else { return }
        file = FileIdentity(path)
        if let permissions = options.permissions, chmod(path, mode_t(permissions)) != 0 {
            throw SocketError(code: errno, operation: .listen, address: address)
        }
    }

    /// 0, or the errno.
    private func bind() -> Int32 {
        address.withSockaddr { bytes in
            let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            return Glibc.bind(descriptor, start, socklen_t(bytes.count)) == 0 ? 0 : errno
        } ?? ENAMETOOLONG
    }

    /// Whether a socket's file is left over from a program that has ended: no process listens on it. Files of
    /// other kinds are never stale.
    private func isStale(_ path: String) -> Bool {
        guard FileIdentity(path)?.isSocket ?? false else { return false }
        do throws(SocketError) {
            _ = try Socket.connecting(to: address)
            return false
        } catch {
            return error.code == ECONNREFUSED
        }
    }

    // MARK: - Accepting

    func accept() -> Accepted {
        while true {
            var accepted: Int32 = -1
            let peer = SocketAddress.of(descriptor) { listener, address, size in
                accepted = acceptConnection(on: listener, address, size)
                return accepted < 0 ? -1 : 0
            }
            if accepted >= 0 { return .connection(Socket(accepted: accepted), from: peer) }
            let code = -accepted
            switch code {
            case EINTR: continue
            case EAGAIN: return .none
            // accept(2) also reports pending network errors of the new connection; they concern that
            // connection alone.
            case ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
                EOPNOTSUPP, ENETUNREACH, ETIMEDOUT:
                return .lost
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(code)
            default: return .failed(code)
            }
        }
    }
}

/// The file that a path or a descriptor refers to now, by device and inode number.
struct FileIdentity: Equatable {
    let device: dev_t
    let number: ino_t
    let mode: mode_t

    var isSocket: Bool { mode & S_IFMT == S_IFSOCK }

    /// Nil if there is no file. A symbolic link is not followed.
    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        device = status.st_dev
        number = status.st_ino
        mode = status.st_mode
    }

    /// Nil if the descriptor is closed.
    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        device = status.st_dev
        number = status.st_ino
        mode = status.st_mode
    }

    /// Removes the file of a Unix socket's address, unless another file has taken its place.
    func remove(of address: SocketAddress) {
        if case .unix(let path) = address, FileIdentity(path) == self { _ = unlink(path) }
    }

    static func == (a: FileIdentity, b: FileIdentity) -> Bool {
        a.device == b.device && a.number == b.number
    }
}
