internal import Glibc
internal import RondoCore

/// The socket of a local socket port.
///
/// `@unchecked Sendable`: the socket is used only under the lock of the `PortReceiver` that has it, and
/// closed once, when the receiver no longer uses it.
enum PortEndpoint: @unchecked Sendable {
    case listening(ListeningSocket)
    case datagrams(DatagramSocket)

    /// Makes a socket at the address of `signature`; a stream socket listens.
    init(_ signature: PortSignature) throws(SocketError) {
        guard let address = signature.socketAddress, address.family == signature.family else {
            throw SocketError(code: EAFNOSUPPORT, operation: .bind)
        }
        switch signature.kind {
        case .stream: self = .listening(try ListeningSocket(address, StreamListener.Configuration()))
        case .datagrams:
            self = .datagrams(
                try DatagramSocket(
                    address, type: signature.type, protocolNumber: signature.protocolNumber))
        case nil: throw SocketError(code: ESOCKTNOSUPPORT, operation: .open, address: address)
        }
    }

    /// Takes over a descriptor, of a listening stream socket or of a datagram socket. If this throws, the
    /// descriptor stays the caller's.
    init(adopting descriptor: Int32, _ kind: PortSignature.Kind?) throws(SocketError) {
        switch kind {
        case .stream:
            var listens: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 else {
                throw SocketError(code: errno, operation: .inspect)
            }
            guard listens != 0 else { throw SocketError(code: EINVAL, operation: .listen) }
            self = .listening(try ListeningSocket(adopting: descriptor))
        case .datagrams: self = .datagrams(try DatagramSocket(adopting: descriptor))
        case nil: throw SocketError(code: ESOCKTNOSUPPORT, operation: .open)
        }
    }

    var descriptor: Int32 {
        switch self {
        case .listening(let socket): socket.descriptor
        case .datagrams(let socket): socket.descriptor
        }
    }

    var address: SocketAddress? {
        switch self {
        case .listening(let socket): socket.address
        case .datagrams(let socket): socket.address
        }
    }

    func close() {
        switch self {
        case .listening(let socket): socket.close()
        case .datagrams(let socket): socket.close()
        }
    }
}
