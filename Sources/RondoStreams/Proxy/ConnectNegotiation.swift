internal import RondoCore

/// The client's side of HTTP's CONNECT (RFC 9110, section 9.3.6): a request, and the head of the answer.
///
/// A head is all that is read: what comes behind that of a 2xx is the host's, and has no content of its own
/// whatever its fields say. An answer that refuses is kept (`NegotiationError.response`), for an owner
/// that answers its challenge on a new connection.
struct ConnectNegotiation: ChannelNegotiation {
    /// The most bytes of a head, as of other HTTP clients' (curl and nginx allow 8 to 100 KiB).
    static let headLimit = 16_384
    /// Heads of interim answers (1xx) that may come before.
    static let interimLimit = 8

    private let destination: ProxyDestination
    private var head: [UInt8] = []
    private var interims = 0

    init(to destination: ProxyDestination) { self.destination = destination }

    mutating func begin() -> NegotiationStep {
        guard let authority else { return .failed(destination.impossibleHost) }
        var request = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
        if let name = destination.proxy.userName {
            // RFC 7617: the name ends at the first colon.
            guard !name.contains(":") else {
                return .failed(destination.error(.authentication, "a user name has no colon in HTTP"))
            }
            let pair = Data("\(name):\(destination.proxy.password ?? "")".utf8)
            request += "Proxy-Authorization: Basic \(pair.base64EncodedString())\r\n"
        }
        return .exchange(Array((request + "\r\n").utf8))
    }

    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep {
        consumed = 0
        for byte in bytes {
            guard head.count < Self.headLimit else {
                consumed = bytes.count
                return .failed(
                    destination.error(
                        .protocolViolation, "the head of its answer is longer than \(Self.headLimit) bytes"))
            }
            head.append(byte)
            consumed += 1
            guard isComplete else { continue }
            let step = understand()
            guard case .exchange = step else {
                if case .failed = step { consumed = bytes.count }
                return step
            }
        }
        return .exchange([])
    }

    func receiveEnd() -> NegotiationError { destination.closed }

    /// An empty line ends the head; a bare LF counts as a line's end (RFC 9112, section 2.2).
    private var isComplete: Bool {
        guard head.last == 10 else { return false }
        let rest = head.dropLast()
        return rest.last == 10 || (rest.last == 13 && rest.dropLast().last == 10)
    }

    private mutating func understand() -> NegotiationStep {
        guard let status else { return .failed(destination.violation) }
        switch status {
        case 100..<200:
            interims += 1
            head = []
            return interims > Self.interimLimit ? .failed(destination.violation) : .exchange([])
        case 200..<300:
            return .done([])
        // 401 is not a proxy's to say, and yet is said (tinyproxy does so of a wrong password).
        case 401, 407:
            let cause =
                destination.proxy.userName == nil
                ? "it wants a user name and password (\(status))"
                : "it does not accept this user name and password (\(status))"
            return .failed(destination.error(.authentication, cause, code: status, response: head))
        default:
            return .failed(
                destination.refused(
                    "it answered “\(statusLine.dropFirst(9))”", code: status, response: head))
        }
    }

    private var statusLine: String {
        // For people, perhaps in a terminal: control characters are not for them.
        let line = head.prefix { $0 != 10 && $0 != 13 }.prefix(200)
        return String(decoding: line.map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
    }

    /// "HTTP/1.1 200 …": the three digits.
    private var status: Int? {
        let line = head.prefix { $0 != 10 && $0 != 13 }
        guard line.starts(with: "HTTP/1.".utf8), line.count >= 12, line[8] == UInt8(ascii: " "),
            line.count == 12 || line[12] == UInt8(ascii: " ")
        else { return nil }
        let digits = line[9..<12].map { Int($0) - 48 }
        guard digits.allSatisfy({ (0...9).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + $1 }
    }

    /// "host:port", an IPv6 address in brackets; nil if it cannot be written.
    private var authority: String? {
        let host = destination.host
        // Nothing that would end the line or the word, and no name that is not in the form of the DNS.
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            !host.contains("/"), destination.portBytes != nil
        else { return nil }
        if case .ipv6 = destination.address { return "[\(host)]:\(destination.port)" }
        return host.contains(":") ? nil : "\(host):\(destination.port)"
    }
}
