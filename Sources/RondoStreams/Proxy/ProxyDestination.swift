internal import RondoCore

/// The host and port that a proxy must connect to, and the proxy.
struct ProxyDestination: Sendable, Equatable {
    let host: String
    let port: Int
    let proxy: StreamProxy

    init(host: String, port: Int, proxy: StreamProxy) {
        // The host of a URL may be an IPv6 address in brackets.
        self.host = Resolver.withoutBrackets(host)
        self.port = port
        self.proxy = proxy
    }

    /// Nil if `port` is no valid port.
    var portBytes: [UInt8]? {
        UInt16(exactly: port).map { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }

    /// The host as an address, if it is one.
    var address: SocketAddress? { SocketAddress(literal: host, port: 0) }

    var name: String { "\(proxy.kind == .httpConnect ? "HTTP" : "SOCKS") proxy \(proxy.host):\(proxy.port)" }

    func refused(_ cause: String, code: Int = 0, response: [UInt8] = []) -> NegotiationError {
        error(.refused, cause, code: code, response: response)
    }

    func error(
        _ kind: NegotiationError.Kind, _ cause: String, code: Int = 0, response: [UInt8] = []
    ) -> NegotiationError {
        NegotiationError(
            kind, code: code, response: response,
            description: "the \(name) did not let the connection to \(host), port \(port), through: \(cause)")
    }

    var violation: NegotiationError {
        error(.protocolViolation, "its answer is not one of \(article). Check the proxy's kind and port")
    }

    var closed: NegotiationError {
        error(
            .closed,
            "it closed the connection before its answer was complete. Check the proxy's kind and port, and "
                + "whether it reaches the host")
    }

    var impossibleHost: NegotiationError {
        refused("this host or port cannot be written in a request to \(article)")
    }

    private var article: String {
        switch proxy.kind.dialect {
        case .socks4: "a SOCKS 4 proxy"
        case .socks5: "a SOCKS 5 proxy"
        case .httpConnect: "an HTTP proxy"
        }
    }
}

extension SocketAddress {
    /// The bytes of an IPv4 or IPv6 address in network order; nil for a Unix socket.
    var networkBytes: [UInt8]? {
        switch self {
        case .ipv4(let address, _): withUnsafeBytes(of: address.bigEndian, Array.init)
        case .ipv6(let high, let low, _, _):
            withUnsafeBytes(of: (high.bigEndian, low.bigEndian), Array.init)
        case .unix: nil
        }
    }
}

/// Collects a proxy's reply from pieces; its length becomes known only as it arrives.
struct ProxyReply: Sendable {
    private(set) var bytes: [UInt8] = []

    /// Takes bytes from `piece`, starting at `consumed`, until `count` bytes are collected.
    ///
    /// - Returns: Whether all `count` bytes are there.
    mutating func fill(
        to count: Int, from piece: UnsafeRawBufferPointer, consumed: inout Int
    ) -> Bool {
        let taken = max(0, min(count - bytes.count, piece.count - consumed))
        bytes.append(contentsOf: piece[consumed..<(consumed + taken)])
        consumed += taken
        return bytes.count >= count
    }

    mutating func clear() { bytes = [] }
}
