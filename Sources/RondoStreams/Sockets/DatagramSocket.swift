internal import Glibc
internal import RondoCore

/// Owns a non-blocking datagram socket that is bound to an address, and the file of a Unix socket that it has
/// made.
final class DatagramSocket {
    /// The descriptor's number, or -1 once closed.
    private(set) var descriptor: Int32
    private(set) var address: SocketAddress?
    private var file: FileIdentity?

    init(_ address: SocketAddress, type: Int32, protocolNumber: Int32) throws(SocketError) {
        let kind = type | Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = socket(address.family, kind, protocolNumber)
        guard descriptor >= 0 else { throw SocketError(code: errno, operation: .open, address: address) }
        let code = address.withSockaddr { bytes in
            let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            return bind(descriptor, start, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
        guard code == 0 else {
            close()
            throw SocketError(code: code ?? ENAMETOOLONG, operation: .bind, address: address)
        }
        if case .unix(let path) = address, path.utf8.first != 0 { file = FileIdentity(path) }
        self.address = SocketAddress.of(descriptor, getsockname) ?? address
    }

    /// Takes over a descriptor and makes it non-blocking.
    init(adopting descriptor: Int32) throws(SocketError) {
        self.descriptor = descriptor
        do throws(SocketError) {
            try SocketCalls.setNonBlocking(descriptor, for: .open)
        } catch {
            // The caller still owns the descriptor.
            self.descriptor = -1
            throw error
        }
        address = SocketAddress.of(descriptor, getsockname)
    }

    deinit { close() }

    func close() {
        guard descriptor >= 0 else { return }
        if let address { file.take()?.remove(of: address) }
        // Not retried on EINTR: Linux has already freed the number.
        _ = Glibc.close(descriptor)
        descriptor = -1
    }
}
