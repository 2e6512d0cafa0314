internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Asks an HTTP proxy for a tunnel to a server (RFC 9110 §9.3.6), with the same codec as other requests.
///
/// A challenge of the proxy is kept in the error, so that the load can respond to it on another connection.
struct TunnelNegotiation: ProxyNegotiation {
    private let proxy: StreamProxy
    /// `host:port`, an IPv6 address in brackets.
    private let authority: String
    private let authorization: [UInt8]?
    private let fields: [(name: String, value: String)]
    /// The values to check the proxy's proof that it knows the password; nil for none.
    private let session: DigestSession?
    private let sent: DigestSession.Authorization?
    private var codec = HTTP1Codec()

    /// - Parameters:
    ///   - authorization: The value of Proxy-Authorization.
    ///   - fields: The fields besides Host. A Proxy-Authorization among them replaces `authorization`.
    ///   - proof: The values to check the proxy by, if the authorization is Digest.
    init(
        by proxy: StreamProxy, toHost host: String, port: Int, authorization: [UInt8]?,
        fields: [(name: String, value: String)] = [],
        proof: (session: DigestSession, authorization: DigestSession.Authorization)? = nil
    ) {
        self.proxy = proxy
        session = proof?.session
        sent = proof?.authorization
        authority = Self.authority(ofHost: host, port: port)
        self.authorization = authorization
        self.fields = fields
    }

    /// The target of the CONNECT, which Digest protects: `host:port`, an IPv6 address in brackets and without
    /// its zone (RFC 6874 §4).
    static func authority(ofHost host: String, port: Int) -> String {
        let isBare = host.contains(":") && !host.hasPrefix("[")
        return isBare ? "[\(host.prefix { $0 != "%" })]:\(port)" : "\(host):\(port)"
    }

    mutating func begin() -> NegotiationStep {
        var fields = HeaderFields([("Host", authority)])
        for (name, value) in self.fields { fields.append(name: name, value: value) }
        if let authorization, !fields.contains("Proxy-Authorization") {
            authorization.withUnsafeBufferPointer { fields.set(name: "Proxy-Authorization", value: $0) }
        }
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
                    guard !failsMutualAuthentication(head) else {
                        consumed = bytes.count
                        return .failed(
                            failure(
                                .protocolViolation, "it failed to prove that it knows the password (rspauth)")
                        )
                    }
                    return .done([])
                case .response(let head, _):
                    consumed = bytes.count
                    return .failed(refusal(head))
                case .body, .trailers, .end, .paused, .switchedProtocol, .closed:
                    return .failed(
                        failure(.protocolViolation, "it sent something other than a response to CONNECT"))
                }
            }
        } catch {
            consumed = bytes.count
            return .failed(failure(.protocolViolation, Self.cause(error)))
        }
    }

    /// The codec's sentence, or one about the proxy where the codec's takes it for a server.
    private static func cause(_ error: HTTP1Error) -> String {
        switch error {
        case .peer(.invalidStatusLine(let excerpt)):
            "its answer begins with “\(excerpt)”, which is not HTTP. Check the proxy's kind and port"
        case .peer(.unsupportedVersion(let major, let minor)):
            "it answers in HTTP/\(major).\(minor), which is not spoken here"
        case .peer(.unexpectedSwitchingProtocols):
            "it switched to another protocol (101), which was not asked for"
        case .peer, .local: error.description
        }
    }

    func receiveEnd() -> NegotiationError {
        failure(
            .closed,
            "it closed the connection before its answer was complete. Check the proxy's kind and port, and "
                + "whether it reaches the host")
    }

    /// Whether the proxy claims to know the password, and the claim is false (RFC 7616 §3.5).
    private func failsMutualAuthentication(_ head: ResponseHead) -> Bool {
        guard let info = head.fields.firstBytes(of: "Proxy-Authentication-Info"), var session, let sent
        else { return false }
        let bodyHash = session.challenge.algorithm.hash.hexadecimal(of: "")
        return session.received(info, to: sent, bodyHash: bodyHash) == .refuted
    }

    private func refusal(_ head: ResponseHead) -> NegotiationError {
        let isUnknown = [400, 404, 405, 501].contains(head.status)
        return failure(
            head.status == 407 ? .authentication : .refused,
            "it answered “\(head.status) \(Grammar.excerpt(head.reason.utf8))”"
                + (isUnknown ? ", as servers that are no proxies do" : ""),
            code: head.status, answer: head)
    }

    private func failure(
        _ kind: NegotiationError.Kind, _ cause: String, code: Int = 0, answer: ResponseHead? = nil
    ) -> NegotiationError {
        NegotiationError(
            kind, code: code, answer: answer,
            description:
                "the proxy \(proxy.host), port \(proxy.port), makes no tunnel to \(authority): \(cause)")
    }
}

extension TunnelNegotiation {
    /// The head of a proxy's response to CONNECT, if that is a challenge and the cause of `error`; nil
    /// otherwise.
    static func challenge(in error: ChannelError) -> ResponseHead? {
        guard case .negotiation(let error) = error, error.code == 407 else { return nil }
        return error.answer as? ResponseHead
    }
}
