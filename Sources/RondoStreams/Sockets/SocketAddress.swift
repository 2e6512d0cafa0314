internal import RondoCore

/// The address of a socket: an IPv4 or IPv6 address with its port, or the path of a Unix socket.
///
/// The corresponding C type is `struct sockaddr`. Addresses are kept in host byte order, so that two equal
/// addresses are equal values, whatever padding the kernel has left in them.
package enum SocketAddress: Hashable, Sendable {
    case ipv4(UInt32, port: UInt16)
    /// `scope` is the index of the interface that a link-local address belongs to, and 0 for all others.
    case ipv6(high: UInt64, low: UInt64, port: UInt16, scope: UInt32)
    /// A path in the file system. A path that begins with a NUL is a name in Linux's abstract namespace.
    case unix(path: String)

    package static func loopback(port: UInt16) -> SocketAddress { .ipv4(0x7f00_0001, port: port) }

    /// The port, or nil for a Unix socket, which has none.
    package var port: UInt16? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, _, let port, _): port
        case .unix: nil
        }
    }

    /// Whether a connection to this address stays within this machine.
    var isOfThisMachine: Bool {
        switch self {
        case .ipv4(let address, _): address >> 24 == 127
        case .ipv6(let high, let low, _, _): high == 0 && low == 1
        case .unix: true
        }
    }

    /// The IPv4 address of an IPv4-mapped IPv6 address, as sockets for both families report it.
    var unmapped: SocketAddress {
        guard case .ipv6(0, let low, let port, _) = self, low >> 32 == 0xffff else { return self }
        return .ipv4(UInt32(truncatingIfNeeded: low), port: port)
    }

    /// The same address with another port; a Unix socket is returned unchanged.
    package func withPort(_ port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address, port: port)
        case .ipv6(let high, let low, _, let scope): .ipv6(high: high, low: low, port: port, scope: scope)
        case .unix: self
        }
    }
}

// MARK: - Text

extension SocketAddress {
    /// The address that `literal` spells, in the strict forms only: four decimal numbers, or IPv6 without
    /// brackets and with at most one `%scope` (a number or the name of an interface).
    ///
    /// Nil for everything else, `127.1` and `0x7f000001` included, which `Resolver.numeric` accepts.
    package init?(literal: String, port: UInt16) {
        // A C function would stop at a NUL and take "127.0.0.1\0.example.com" for an address.
        guard !literal.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, literal, &four) == 1 {
            self = .ipv4(UInt32(bigEndian: four.s_addr), port: port)
            return
        }
        let parts = literal.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var six = in6_addr()
        guard let address = parts.first, inet_pton(AF_INET6, String(address), &six) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            if scope == 0 { return nil }
        }
        self = withUnsafeBytes(of: six) { .ipv6($0, port: port, scope: scope) }
    }

    fileprivate static func ipv6(_ bytes: UnsafeRawBufferPointer, port: UInt16, scope: UInt32) -> Self {
        .ipv6(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
            port: port, scope: scope)
    }

    /// The address alone, as a person types it: "127.0.0.1", "fe80::1%eth0", "/run/app.sock".
    package var host: String {
        switch self {
        case .ipv4(let address, _):
            return "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
        case .ipv6(let high, let low, _, let scope):
            let address = withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { ipv6Text(of: $0) }
            return scope == 0 ? address : "\(address)%\(interfaceName(scope))"
        case .unix(let path):
            return path.utf8.first == 0 ? "@" + path.dropFirst() : path
        }
    }

    private func ipv6Text(of bytes: UnsafeRawBufferPointer) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, bytes.baseAddress, &text, socklen_t(text.count)) != nil else { return "?" }
        return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    private func interfaceName(_ index: UInt32) -> String {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE) + 1)
        // The interface may no longer exist: its index still identifies it.
        guard if_indextoname(index, &name) != nil else { return String(index) }
        return name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// "127.0.0.1:80", "[::1]:80", "unix:/run/app.sock".
    package var description: String {
        switch self {
        case .ipv4(_, let port): "\(host):\(port)"
        case .ipv6(_, _, let port, _): "[\(host)]:\(port)"
        case .unix: "unix:\(host)"
        }
    }
}

// MARK: - struct sockaddr

extension SocketAddress {
    /// The address in the bytes of a `sockaddr`; nil for another family or too few bytes.
    package init?(sockaddr bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= MemoryLayout<sa_family_t>.size else { return nil }
        switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET:
            guard bytes.count >= MemoryLayout<sockaddr_in>.size else { return nil }
            let four = bytes.loadUnaligned(as: sockaddr_in.self)
            self = .ipv4(UInt32(bigEndian: four.sin_addr.s_addr), port: UInt16(bigEndian: four.sin_port))
        case AF_INET6:
            guard bytes.count >= MemoryLayout<sockaddr_in6>.size else { return nil }
            let six = bytes.loadUnaligned(as: sockaddr_in6.self)
            self = withUnsafeBytes(of: six.sin6_addr) {
                .ipv6($0, port: UInt16(bigEndian: six.sin6_port), scope: six.sin6_scope_id)
            }
        case AF_UNIX:
            var path = bytes.dropFirst(MemoryLayout<sa_family_t>.size)
            // A name in the abstract namespace is as long as the address says; a path ends at its NUL.
            if let first = path.first, first != 0 { path = path.prefix { $0 != 0 } }
            guard let text = String(validating: path, as: UTF8.self) else { return nil }
            self = .unix(path: text)
        default:
            return nil
        }
    }

    /// Calls `body` with this address as a `sockaddr`; returns nil if a Unix path is too long for one.
    package func withSockaddr<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
        switch self {
        case .ipv4(let address, let port):
            var four = sockaddr_in()
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            four.sin_addr.s_addr = address.bigEndian
            return withUnsafeBytes(of: four, body)
        case .ipv6(let high, let low, let port, let scope):
            var six = sockaddr_in6()
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            six.sin6_scope_id = scope
            withUnsafeMutableBytes(of: &six.sin6_addr) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return withUnsafeBytes(of: six, body)
        case .unix(let path):
            var address = sockaddr_un()
            let start = MemoryLayout<sa_family_t>.size
            // A path needs one more byte for its NUL; a name in the abstract namespace has none.
            let length = path.utf8.count + (path.utf8.first == 0 ? 0 : 1)
            guard start + length <= MemoryLayout<sockaddr_un>.size else { return nil }
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address) { bytes in
                for (offset, byte) in path.utf8.enumerated() { bytes[start + offset] = byte }
            }
            return withUnsafeBytes(of: address) {
                body(UnsafeRawBufferPointer(rebasing: $0[..<(start + length)]))
            }
        }
    }

    /// The value for `socket(2)`'s first parameter.
    var family: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }
}
