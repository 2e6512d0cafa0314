internal import RondoCore

/// The client's side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).
struct SOCKS5Negotiation: ProxyNegotiation {
    private enum State {
        case method, authentication, reply
    }

    private enum Method {
        static let none: UInt8 = 0
        static let password: UInt8 = 2
        static let unacceptable: UInt8 = 0xff
    }

    private enum AddressType {
        static let ipv4: UInt8 = 1, name: UInt8 = 3, ipv6: UInt8 = 4
    }

    private let destination: ProxyDestination
    private var state = State.method
    private var reply = ProxyReply()

    init(to destination: ProxyDestination) { self.destination = destination }

    mutating func begin() -> NegotiationStep {
        guard request != nil else { return .failed(destination.impossibleHost) }
        guard destination.proxy.userName != nil else { return .exchange([5, 1, Method.none]) }
        guard credentials != nil else {
            return .failed(
                destination.error(
                    .authentication, "SOCKS takes user names and passwords of 1 to 255 bytes"))
        }
        return .exchange([5, 2, Method.none, Method.password])
    }

    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep {
        consumed = 0
        var toSend: [UInt8] = []
        while true {
            guard reply.fill(to: length, from: bytes, consumed: &consumed) else { return .exchange(toSend) }
            // The first bytes of a reply determine its length.
            guard reply.bytes.count == length else { continue }
            let step = understand()
            reply.clear()
            switch step {
            case .exchange(let more): toSend += more
            // A proxy may answer before it has received the request, which is sent all the same.
            case .done: return .done(toSend)
            case .failed: return step
            }
        }
    }

    func receiveEnd() -> NegotiationError { destination.closed }

    /// The length of the reply being received, as far as it is known.
    private var length: Int {
        switch state {
        case .method, .authentication: 2
        case .reply where reply.bytes.first != 5: 4
        case .reply:
            switch reply.bytes.dropFirst(3).first {
            case AddressType.ipv4: 4 + 4 + 2
            case AddressType.ipv6: 4 + 16 + 2
            case AddressType.name: reply.bytes.count < 5 ? 5 : 5 + Int(reply.bytes[4]) + 2
            // A reply with an unknown type of address: four bytes are enough to refuse it.
            default: 4
            }
        }
    }

    private mutating func understand() -> NegotiationStep {
        switch state {
        case .method: chosen()
        case .authentication: authenticated()
        case .reply: replied()
        }
    }

    private mutating func chosen() -> NegotiationStep {
        guard reply.bytes[0] == 5 else { return .failed(destination.violation) }
        switch reply.bytes[1] {
        case Method.none: return ask()
        case Method.password where destination.proxy.userName != nil:
            state = .authentication
            return .exchange(credentials ?? [])
        case Method.unacceptable:
            let cause =
                destination.proxy.userName == nil
                ? "it wants a user name and password, or accepts no connection from here"
                : "it takes no user name and password"
            return .failed(
                destination.error(.authentication, cause, code: Int(Method.unacceptable)))
        default: return .failed(destination.violation)
        }
    }

    private mutating func authenticated() -> NegotiationStep {
        // RFC 1929: the subnegotiation has version 1. Some servers answer 5 here, which is accepted.
        guard reply.bytes[0] == 1 || reply.bytes[0] == 5 else { return .failed(destination.violation) }
        guard reply.bytes[1] == 0 else {
            return .failed(
                destination.error(
                    .authentication, "it does not accept this user name and password",
                    code: Int(reply.bytes[1])))
        }
        return ask()
    }

    private mutating func ask() -> NegotiationStep {
        state = .reply
        return .exchange(request ?? [])
    }

    private func replied() -> NegotiationStep {
        guard reply.bytes[0] == 5 else { return .failed(destination.violation) }
        let code = reply.bytes[1]
        guard code == 0 else {
            return .failed(destination.refused(Self.sentence(of: code), code: Int(code)))
        }
        return reply.bytes.count > 4 ? .done([]) : .failed(destination.violation)
    }

    // MARK: - Requests

    /// The CONNECT request for the host; nil if its name or port cannot be encoded.
    private var request: [UInt8]? {
        guard let port = destination.portBytes else { return nil }
        let head: [UInt8] = [5, 1, 0]
        switch destination.address {
        case .ipv4: return head + [AddressType.ipv4] + (destination.address?.networkBytes ?? []) + port
        case .ipv6: return head + [AddressType.ipv6] + (destination.address?.networkBytes ?? []) + port
        case .unix, nil:
            let name = Array(destination.host.utf8)
            guard (1...255).contains(name.count), !name.contains(0) else { return nil }
            return head + [AddressType.name, UInt8(name.count)] + name + port
        }
    }

    private var credentials: [UInt8]? {
        let name = Array((destination.proxy.userName ?? "").utf8)
        let password = Array((destination.proxy.password ?? "").utf8)
        guard (1...255).contains(name.count), (0...255).contains(password.count) else { return nil }
        return [1, UInt8(name.count)] + name + [UInt8(password.count)] + password
    }

    /// The meaning of a reply code (RFC 1928, section 6).
    private static func sentence(of code: UInt8) -> String {
        switch code {
        case 1: "it has failed"
        case 2: "its rules do not allow it"
        case 3: "it cannot reach the host's network"
        case 4: "it cannot reach the host, or does not know its name"
        case 5: "the host refused the connection"
        case 6: "the host did not answer in time"
        case 7: "it does not make connections for others"
        case 8: "it cannot use this kind of address"
        default: "it answered with the code \(code)"
        }
    }
}
