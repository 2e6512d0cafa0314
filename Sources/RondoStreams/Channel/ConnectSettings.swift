public import RondoCore

/// How a connection comes about: which addresses it leads to, which of this machine's it comes from, and how long that
/// may take.
///
/// The name in a URL stays what it is: TLS asks for it, and `Host` says it, wherever the connection leads. Nothing is set
/// at first, and names are looked up by the system.
public struct ConnectSettings: Sendable, Hashable {
    /// A host, by its name or address (without brackets), and a port.
    public struct Place: Sendable, Hashable {
        /// `*` stands for every host, in a place that is looked for.
        public var host: String
        public var port: Int

        public init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    /// Another place that connections for a place lead to.
    public struct Detour: Sendable, Hashable {
        /// Nil: for every host.
        public var fromHost: String?
        /// Nil: for every port.
        public var fromPort: Int?
        /// Nil: the host stays.
        public var toHost: String?
        /// Nil: the port stays.
        public var toPort: Int?

        public init(fromHost: String? = nil, fromPort: Int? = nil, toHost: String? = nil, toPort: Int? = nil)
        {
            (self.fromHost, self.fromPort, self.toHost, self.toPort) = (fromHost, fromPort, toHost, toPort)
        }
    }

    /// Which kinds of addresses are tried.
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

    /// This machine's end of a connection.
    public struct LocalEnd: Sendable, Hashable {
        enum Place: Hashable { case any, interface(String), address(String) }
        let place: Place
        /// The ports of which the first that is free is taken; nil: any.
        public var ports: ClosedRange<UInt16>?

        /// Any address.
        public static let any = LocalEnd(place: .any)
        /// Of the interface with this name, `eth0` for one; by its address where the system does not let the program bind
        /// to interfaces.
        public static func interface(_ name: String) -> LocalEnd { LocalEnd(place: .interface(name)) }
        /// Nil: it is none of an interface.
        package var interfaceName: String? { if case .interface(let name) = place { name } else { nil } }

        /// This address, as numbers.
        public static func address(_ literal: String) -> LocalEnd { LocalEnd(place: .address(literal)) }
    }

    /// How long it may take until a request can be sent, in seconds: look-up, connection, proxy and TLS together.
    /// Nil, as at first: as long as the load may take.
    public var timeout: TimeInterval?
    public var addressFamilies = AddressFamilies.any
    /// Addresses, as numbers, that stand for places and are not looked up, proxies among them. A text that is no address is left out.
    public var addresses: [Place: [String]] = [:]
    /// The first that fits a place is taken, before its host is looked up. Not for proxies.
    public var detours: [Detour] = []
    /// A Unix-domain socket that is connected to in place of any host and of any proxy; a name that begins with a NUL is one
    /// in Linux's abstract space.
    public var unixSocketPath: String?
    public var localEnd = LocalEnd.any

    public init() {}

    /// What of it two connections must have in common to serve the same requests; nil: nothing is set.
    package var sharedPart: ConnectSettings? {
        var part = self
        part.timeout = nil
        return part == ConnectSettings() ? nil : part
    }
}

// MARK: - Where a connection leads

extension ConnectSettings {
    /// What comes of a host and a port.
    enum Target: Equatable {
        case addresses([SocketAddress])
        /// To be looked up, without brackets.
        case name(String, port: UInt16)
        /// No port, or a path that is none.
        case impossible(host: String, port: Int)
    }

    /// - Parameter isProxy: The place is a proxy's: detours are for the hosts of URLs.
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
