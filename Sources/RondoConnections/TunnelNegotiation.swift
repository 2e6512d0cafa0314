internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Asks an HTTP proxy for a tunnel to a server (RFC 9110 §9.3.6), by the codec that speaks HTTP elsewhere.
///
/// A challenge of the proxy is kept in the error, so that the load can answer it on another connection.
struct TunnelNegotiation: ChannelNegotiation {
    private let proxy: StreamProxy
    /// `host:port`, an IPv6 address in brackets.
    private let authority: String
    private let authorization: String?
    private var codec = HTTP1Connection()

    /// - Parameter authorization: The value of Proxy-Authorization.
    init(by proxy: StreamProxy, toHost host: String, port: Int, authorization: String?) {
        self.proxy = proxy
        let isBare = host.contains(":") && !host.hasPrefix("[")
        authority = "\(isBare ? "[\(host)]" : host):\(port)"
        self.authorization = authorization
    }

    mutating func begin() -> NegotiationStep {
        var fields = HeaderFields([("Host", authority)])
        if let authorization { fields.append(name: "Proxy-Authorization", value: authorization) }
        var request: [UInt8] = []
        do throws(HTTP1Error) {
            let head = RequestHead(method: "CONNECT", target: authority, fields: fields)
            try codec.send(head: head, body: .none, into: &request)
            try codec.sendEnd(into: &request)
            return .exchange(request)
        } catch {
            return .failed(failure(.refused, error.description))
        }
    }

    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep {
        consumed = 0
        do throws(HTTP1Error) {
            while true {
                switch try codec.nextEvent(from: bytes, consumed: &consumed) {
                case .informational:
                    continue
                case .needMoreData:
                    return .exchange([])
                case .response(let head, _) where (200..<300).contains(head.status):
                    return .done([])
                case .response(let head, _):
                    consumed = bytes.count
                    return .failed(refusal(head))
                case .body, .bodyRange, .trailers, .end, .paused, .switchedProtocol, .closed:
                    return .failed(failure(.protocolViolation, "it answered out of turn"))
                }
            }
        } catch {
            consumed = bytes.count
            return .failed(failure(.protocolViolation, error.description))
        }
    }

    func receiveEnd() -> NegotiationError { failure(.closed, "it closed the connection without an answer") }

    private func refusal(_ head: ResponseHead) -> NegotiationError {
        var text = "HTTP/1.1 \(head.status) \(head.reason)\r\n"
        for (name, value) in head.fields { text += "\(name): \(value)\r\n" }
        let kind: NegotiationError.Kind = head.status == 407 ? .authentication : .refused
        return failure(
            kind, "it answered “\(head.status) \(head.reason)”", code: head.status,
            response: Array((text + "\r\n").utf8))
    }

    private func failure(
        _ kind: NegotiationError.Kind, _ cause: String, code: Int = 0, response: [UInt8] = []
    ) -> NegotiationError {
        NegotiationError(
            kind, code: code, response: response,
            description:
                "the proxy \(proxy.host), port \(proxy.port), makes no tunnel to \(authority): \(cause)")
    }
}
