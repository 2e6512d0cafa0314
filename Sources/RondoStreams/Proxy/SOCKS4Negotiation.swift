internal import RondoCore

/// The client's side of SOCKS 4, and of 4a if the host is a name or an IPv6 address, which the proxy looks
/// up. (There is no RFC; the documents of their authors describe both, NEC's `SOCKS4.protocol` and
/// `SOCKS4A.protocol`.)
struct SOCKS4Negotiation: ProxyNegotiation {
    private let destination: ProxyDestination
    private var reply = ProxyReply()

    init(to destination: ProxyDestination) { self.destination = destination }

    mutating func begin() -> NegotiationStep {
        request.map { .exchange($0) } ?? .failed(destination.impossibleHost)
    }

    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep {
        consumed = 0
        guard reply.fill(to: 8, from: bytes, consumed: &consumed) else { return .exchange([]) }
        guard reply.bytes[0] == 0 else { return .failed(destination.violation) }
        switch reply.bytes[1] {
        case 90: return .done([])
        case 91: return .failed(destination.refused("it refuses, or cannot reach the host", code: 91))
        case 92, 93:
            return .failed(
                destination.error(
                    .authentication, "it does not accept this user name", code: Int(reply.bytes[1])))
        default: return .failed(destination.violation)
        }
    }

    func receiveEnd() -> NegotiationError { destination.closed }

    private var request: [UInt8]? {
        let user = Array((destination.proxy.userName ?? "").utf8)
        guard let port = destination.portBytes, !user.contains(0), user.count <= 255 else { return nil }
        let head: [UInt8] = [4, 1] + port
        if case .ipv4 = destination.address {
            return head + (destination.address?.networkBytes ?? []) + user + [0]
        }
        // 4a: the invalid address 0.0.0.1 means that a name follows.
        let name = Array(destination.host.utf8)
        guard (1...255).contains(name.count), !name.contains(0) else { return nil }
        return head + [0, 0, 0, 1] + user + [0] + name + [0]
    }
}
