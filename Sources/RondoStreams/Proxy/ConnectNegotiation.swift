internal import RondoCore

/// The client's side of HTTP's CONNECT (RFC 9110, section 9.3.6): a request, and the head of the answer.
///
/// Only heads are consumed: the bytes behind the head of a 2xx answer are the host's, because such an answer
/// has no content, whatever its fields say. A refusal is kept (`NegotiationError.response`), for an owner
/// that answers its challenge on a new connection.
struct ConnectNegotiation: ProxyNegotiation {
    /// The most bytes of a head, similar to other HTTP clients (curl and nginx allow 8 to 100 KiB).
    static let headLimit = 16_384
    /// The most interim answers (1xx) before the final one.
    static let interimLimit = 8

    private let destination: ProxyDestination
    private var head: [UInt8] = []
    private var interims = 0

    init(to destination: ProxyDestination) { self.destination = destination }

    mutating func begin() -> NegotiationStep {
        guard let authority else { return .failed(destination.impossibleHost) }
        var request = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
        if let name = destination.proxy.userName {
            // RFC 7617: a user name ends at the first colon.
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

    /// Whether an empty line ends the head; a bare LF counts as a line end (RFC 9112, section 2.2).
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
        // A proxy should answer 407, but some answer 401 (tinyproxy for a wrong password).
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
        // For people, perhaps in a terminal, so control characters are replaced.
        let line = head.prefix { $0 != 10 && $0 != 13 }.prefix(200)
        return String(decoding: line.map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
    }

    /// The three digits in "HTTP/1.1 200 …"; nil if it is no status line.
    private var status: Int? {
        let line = head.prefix { $0 != 10 && $0 != 13 }
        guard line.starts(with: "HTTP/1.".utf8), line.count >= 12, line[8] == UInt8(ascii: " "),
            line.count == 12 || line[12] == UInt8(ascii: " ")
        else { return nil }
        let digits = line[9..<12].map { Int($0) - 48 }
        guard digits.allSatisfy({ (0...9).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + $1 }
    }

    /// "host:port", with an IPv6 address in brackets and without its zone, which is a name on this machine
    /// (RFC 6874 §4); nil if it cannot be written.
    private var authority: String? {
        let host = destination.host
        // Refuses characters that would end the line or the word, and names that are not in DNS form.
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            !host.contains("/"), destination.portBytes != nil
        else { return nil }
        if case .ipv6 = destination.address { return "[\(host.prefix { $0 != "%" })]:\(destination.port)" }
        return host.contains(":") ? nil : "\(host):\(destination.port)"
    }
}
