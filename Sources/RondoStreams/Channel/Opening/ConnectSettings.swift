public import RondoCore

/// The settings for making a connection: its addresses, its local address, and its time limit.
///
/// The name in a URL is not affected: TLS and the `Host` field use it wherever the connection leads. By
/// default nothing is set, and the system looks names up.
public struct ConnectSettings: Sendable, Hashable {
    /// A host, by name or address (without brackets), and a port.
    public struct Place: Sendable, Hashable {
        /// As a key of `addresses`, `*` stands for every host.
        public var host: String
        public var port: Int

        public init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    /// Another destination for the connections to a host and port.
    public struct Detour: Sendable, Hashable {
        /// Nil matches every host.
        public var fromHost: String?
        /// Nil matches every port.
        public var fromPort: Int?
        /// Nil keeps the host.
        public var toHost: String?
        /// Nil keeps the port.
        public var toPort: Int?

        public init(fromHost: String? = nil, fromPort: Int? = nil, toHost: String? = nil, toPort: Int? = nil)
        {
            (self.fromHost, self.fromPort, self.toHost, self.toPort) = (fromHost, fromPort, toHost, toPort)
        }
    }

    /// The address families that are tried.
    public struct AddressFamilies: Sendable, Hashable {
        private enum Kind { case any, ipv4, ipv6 }
        private let kind: Kind

        public static let any = AddressFamilies(kind: .any)
        public static let ipv4 = AddressFamilies(kind: .ipv4)
        public static let ipv6 = AddressFamilies(kind: .ipv6)

        func contains(_ address: SocketAddress) -> Bool {
            switch (kind, address) {
            case (.any, _), (_, .unix), (.ipv4, .ipv4), (.ipv6, .ipv6): true
            case (.ipv4, .ipv6), (.ipv6, .ipv4): false
            }
        }
    }

    /// The local end of a connection.
    public struct LocalEnd: Sendable, Hashable {
        enum Place: Hashable { case any, interface(String), address(String) }
        let place: Place
        /// The local ports, of which the first free one is used; nil: any port.
        public var ports: ClosedRange<UInt16>?

        /// Any address.
        public static let any = LocalEnd(place: .any)
        /// The interface with this name, for example `eth0`. Where the system does not let the program bind
        /// to interfaces, the interface's address is used.
        public static func interface(_ name: String) -> LocalEnd { LocalEnd(place: .interface(name)) }
        /// Nil if the local end is not an interface.
        package var interfaceName: String? { if case .interface(let name) = place { name } else { nil } }

        /// A numeric address.
        public static func address(_ literal: String) -> LocalEnd { LocalEnd(place: .address(literal)) }
    }

    /// The most seconds until a request can be sent: look-up, connection, proxy and TLS together. Nil, the
    /// default: no limit but the load's own.
    public var timeout: TimeInterval?
    public var addressFamilies = AddressFamilies.any
    /// Numeric addresses that replace the look-up of a host and port, proxies included. Texts that are no
    /// addresses are ignored.
    public var addresses: [Place: [String]] = [:]
    /// The first detour that matches a host and port applies, before the host is looked up. Not for proxies.
    public var detours: [Detour] = []
    /// A Unix-domain socket to connect to in place of any host and any proxy. A name that begins with a NUL
    /// is in Linux's abstract namespace.
    public var unixSocketPath: String?
    public var localEnd = LocalEnd.any
    /// Nil, the default: a silent peer is not probed.
    package var keepAlive: SocketOptions.KeepAlive?

    public init() {}

    /// The part that two connections must have in common to serve the same requests; nil: nothing is set.
    package var sharedPart: ConnectSettings? {
        var part = self
        part.timeout = nil
        return part == ConnectSettings() ? nil : part
    }
}

// MARK: - Where a connection leads

extension ConnectSettings {
    /// The destination for a host and a port.
    enum Target: Equatable {
        case addresses([SocketAddress])
        /// A name to look up, without brackets.
        case name(String, port: UInt16)
        /// The port is invalid.
        case impossible(host: String, port: Int)
    }

    /// - Parameter isProxy: True for a proxy: detours apply to the hosts of URLs only.
    func target(host: String, port: Int, isProxy: Bool) -> Target {
        if let unixSocketPath { return .addresses([.unix(path: unixSocketPath)]) }
        var place = Place(host: Resolver.withoutBrackets(host), port: port)
        if !isProxy { place = detoured(place) }
        guard let number = UInt16(exactly: place.port) else {
            return .impossible(host: place.host, port: place.port)
        }
        if let known = knownAddresses(of: place, port: number) { return .addresses(known) }
        return .name(place.host, port: number)
    }

    private func detoured(_ place: Place) -> Place {
        let detour = detours.first { detour in
            detour.fromHost.map { Resolver.withoutBrackets($0).lowercased() == place.host.lowercased() }
                ?? true
                && detour.fromPort ?? place.port == place.port
        }
        guard let detour else { return place }
        return Place(
            host: detour.toHost.map(Resolver.withoutBrackets) ?? place.host, port: detour.toPort ?? place.port
        )
    }

    private func knownAddresses(of place: Place, port: UInt16) -> [SocketAddress]? {
        if addresses.isEmpty { return nil }
        let names = [place.host.lowercased(), "*"]
        let known = names.lazy.compactMap { addresses[Place(host: $0, port: place.port)] }.first
        return known?.compactMap { SocketAddress(literal: Resolver.withoutBrackets($0), port: port) }
            .filter(addressFamilies.contains)
    }
}
