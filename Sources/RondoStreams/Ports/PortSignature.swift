internal import Glibc
internal import RondoCore

/// The address of a socket port with family, type and protocol, in the form in which messages carry it.
///
/// On the wire, as in swift-corelibs-foundation's SocketPort: one byte each for family, type, protocol and
/// the length of the address, then the address, in Darwin's layout if it is IPv4 or IPv6.
package struct PortSignature: Hashable, Sendable {
    let family: Int32
    let type: Int32
    let protocolNumber: Int32
    /// A `struct sockaddr` of this machine.
    let address: Data

    init(family: Int32, type: Int32, protocolNumber: Int32, address: Data) {
        self.family = family
        self.type = type
        self.protocolNumber = protocolNumber
        // Normalized, so that equal addresses have equal bytes, whatever the padding contains.
        self.address = Self.socketAddress(address)?.sockaddrData ?? address
    }

    var socketAddress: SocketAddress? { Self.socketAddress(address) }

    private static func socketAddress(_ data: Data) -> SocketAddress? {
        data.withUnsafeBytes { SocketAddress(sockaddr: $0) }
    }

    /// How messages are sent to the port.
    enum Kind {
        case stream, datagrams
    }

    /// Nil for a socket type that carries no messages of ports.
    var kind: Kind? {
        switch type {
        case Int32(SOCK_STREAM.rawValue): .stream
        case Int32(SOCK_DGRAM.rawValue): .datagrams
        default: nil
        }
    }

    static func tcp(_ address: SocketAddress) -> PortSignature {
        PortSignature(
            family: address.family, type: Int32(SOCK_STREAM.rawValue), protocolNumber: Int32(IPPROTO_TCP),
            address: address.sockaddrData ?? Data())
    }

    /// The same signature with another address.
    func at(_ address: SocketAddress) -> PortSignature {
        PortSignature(
            family: family, type: type, protocolNumber: protocolNumber,
            address: address.sockaddrData ?? self.address)
    }

    // MARK: On the wire

    private static let darwinIPv4: UInt8 = 2
    private static let darwinIPv6: UInt8 = 30
    private static let darwinIPv4Size: UInt8 = 16
    private static let darwinIPv6Size: UInt8 = 28
    /// The bytes before the address.
    static let headSize = 4

    /// Nil if one of the numbers does not fit into a byte.
    var wireBytes: [UInt8]? {
        let address = wireAddress
        guard let family = UInt8(exactly: family), let type = UInt8(exactly: type),
            let number = UInt8(exactly: protocolNumber), let size = UInt8(exactly: address.count)
        else { return nil }
        return [family, type, number, size] + address
    }

    private var wireAddress: [UInt8] {
        switch socketAddress {
        case .ipv4(let four, let port):
            [Self.darwinIPv4Size, Self.darwinIPv4] + port.bytes + four.bytes + [UInt8](repeating: 0, count: 8)
        case .ipv6(let high, let low, let port, let scope):
            // The scope is in the machine's byte order, as in swift-corelibs-foundation.
            [Self.darwinIPv6Size, Self.darwinIPv6] + port.bytes + [0, 0, 0, 0] + high.bytes + low.bytes
                + withUnsafeBytes(of: scope) { [UInt8]($0) }
        case .unix, nil: [UInt8](address)
        }
    }

    /// Reads the format of `wireBytes`; nil if the lengths do not match.
    init?(wire bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headSize, bytes.count == Self.headSize + Int(bytes[3]) else { return nil }
        let address = UnsafeRawBufferPointer(rebasing: bytes[Self.headSize...])
        let data = Self.fromWire(address)?.sockaddrData ?? Data(address)
        self.init(
            family: Int32(bytes[0]), type: Int32(bytes[1]), protocolNumber: Int32(bytes[2]), address: data)
    }

    private static func fromWire(_ bytes: UnsafeRawBufferPointer) -> SocketAddress? {
        if bytes.count == Int(darwinIPv4Size), bytes[0] == darwinIPv4Size, bytes[1] == darwinIPv4 {
            return .ipv4(
                UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
                port: UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
        }
        if bytes.count == Int(darwinIPv6Size), bytes[0] == darwinIPv6Size, bytes[1] == darwinIPv6 {
            return .ipv6(
                high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
                port: UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)),
                scope: bytes.loadUnaligned(fromByteOffset: 24, as: UInt32.self))
        }
        return nil
    }
}

extension FixedWidthInteger {
    /// The bytes of the number, the most significant first.
    var bytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}

extension SocketAddress {
    /// The bytes of a `struct sockaddr`; nil if the path of a Unix socket is too long for one.
    var sockaddrData: Data? { withSockaddr { Data($0) } }

    /// Whether it is the wildcard address, which stands for all addresses of a machine.
    var isUnspecified: Bool {
        switch self {
        case .ipv4(let address, _): address == 0
        case .ipv6(let high, let low, _, _): high == 0 && low == 0
        case .unix: false
        }
    }
}
