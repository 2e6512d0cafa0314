internal import Glibc
internal import RondoCore

// Binding the local end of a connection, where the program chooses it.
extension Socket {
    /// Binds the socket before it is connected to `address`.
    func bind(to end: ConnectSettings.LocalEnd, for address: SocketAddress) throws(SocketError) {
        if case .unix = address { return }
        var local = address.unspecified
        switch end.place {
        case .any:
            if end.ports == nil { return }
        case .interface(let name):
            if let found = try bind(toInterface: name, for: address) { local = found }
        case .address(let literal):
            guard let found = SocketAddress(literal: Resolver.withoutBrackets(literal), port: 0) else {
                throw SocketError(code: EADDRNOTAVAIL, operation: .bind)
            }
            local = found
        }
        try bind(to: local, ports: end.ports)
    }

    /// - Returns: The interface's address, if the system does not let the program bind to the interface
    ///   itself; otherwise nil.
    private func bind(
        toInterface name: String, for address: SocketAddress
    ) throws(SocketError) -> SocketAddress? {
        let size = socklen_t(name.utf8.count)
        let result = name.withCString { setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, $0, size) }
        let code = result == 0 ? 0 : errno
        if code == 0 { return nil }
        guard code == EPERM || code == EACCES,
            let found = SocketAddress.ofInterface(name, family: address.family)
        else { throw SocketError(code: code, operation: .bind) }
        return found
    }

    private func bind(to local: SocketAddress, ports: ClosedRange<UInt16>?) throws(SocketError) {
        var code: Int32 = 0
        for port in ports ?? 0...0 {
            code = bind(to: local.withPort(port))
            if code == 0 { return }
            if code != EADDRINUSE && code != EACCES { break }
        }
        throw SocketError(code: code, operation: .bind, address: local)
    }

    /// - Returns: 0, or the errno.
    private func bind(to local: SocketAddress) -> Int32 {
        local.withSockaddr { bytes in
            let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            return Glibc.bind(descriptor, start, socklen_t(bytes.count)) == 0 ? 0 : errno
        } ?? ENAMETOOLONG
    }
}

extension SocketAddress {
    /// The wildcard address of the same family, with port 0.
    fileprivate var unspecified: SocketAddress {
        switch self {
        case .ipv4: .ipv4(0, port: 0)
        case .ipv6: .ipv6(high: 0, low: 0, port: 0, scope: 0)
        case .unix: self
        }
    }

    /// An address of the interface; nil if it has none of that family, or does not exist.
    package static func ofInterface(_ name: String, family: Int32? = nil) -> SocketAddress? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        for entry in sequence(first: list, next: { $0?.pointee.ifa_next }).prefix(while: { $0 != nil }) {
            guard let entry = entry?.pointee, let start = entry.ifa_addr,
                String(cString: entry.ifa_name) == name
            else { continue }
            let size: Int
            switch Int32(start.pointee.sa_family) {
            case AF_INET: size = MemoryLayout<sockaddr_in>.size
            case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
            default: continue
            }
            guard let address = SocketAddress(sockaddr: UnsafeRawBufferPointer(start: start, count: size)),
                family == nil || address.family == family
            else { continue }
            return address
        }
        return nil
    }
}
