import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// A proxy's protocol as small as can be: it is asked for a host by a line, and answers by one.
private struct LineNegotiation: ProxyNegotiation {
    private let host: String
    private var line: [UInt8] = []

    init(_ host: String) { self.host = host }

    mutating func begin() -> NegotiationStep { .exchange(Array("TO \(host)\n".utf8)) }

    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep {
        for byte in bytes {
            consumed += 1
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            switch String(decoding: line, as: UTF8.self) {
            case "OK": return .done([])
            case "WHO":
                line = []
                return .exchange(Array("ME\n".utf8))
            case "LAST": return .done(Array("THANKS\n".utf8))
            case let words:
                return .failed(NegotiationError(.refused, code: 7, description: "the proxy says \(words)"))
            }
        }
        return .exchange([])
    }

    mutating func receiveEnd() -> NegotiationError {
        NegotiationError(.closed, description: "the proxy has closed after \(line.count) bytes")
    }
}

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct NegotiatingChannelTests {
    /// Opens a channel to "behind" through a proxy that plays a script, and returns its events and the bytes or the
    /// error that it got.
    private func talk(_ script: @escaping @Sendable (TestPeer) throws -> Void) throws -> Findings {
        let server = try TestServer(serve: script)
        defer { server.stop() }
        return try onStreamThread { [port = server.port] loop in
            let route = ProxyRoute(
                host: "127.0.0.1", port: Int(port), negotiation: LineNegotiation("behind"))
            let talk = Conversation(SocketChannel(.init(host: "behind", port: 99, route: route)))
            talk.channel.wantsRead = true
            talk.open(in: loop)
            try loop.run { talk.failure != nil || talk.ending != nil }
            return talk.words.filter { $0 != "readable" } + [talk.failure?.description ?? talk.text]
        }
    }

    @Test func `bytes of the host after the proxy's reply go to the owner`() throws {
        let findings = try talk { peer in
            try peer.send("OK\n220 hello\n")
        }
        #expect(findings == ["connecting", "connected", "open", "220 hello\n"])
    }

    @Test func `a proxy that does not answer is named when the time is over`() throws {
        let server = try TestServer { $0.waitForEnd() }
        defer { server.stop() }
        let findings = try onStreamThread { [port = server.port] loop in
            let route = ProxyRoute(
                host: "127.0.0.1", port: Int(port), negotiation: LineNegotiation("behind"))
            var configuration = SocketChannel.Configuration(host: "behind", port: 99, route: route)
            configuration.openingLimit = 0.05
            let talk = Conversation(SocketChannel(configuration))
            talk.open(in: loop)
            try loop.run { talk.failure != nil }
            return [talk.failure?.description ?? ""]
        }
        #expect(
            findings == [
                "the connection to behind through the proxy 127.0.0.1, port \(server.port) was not ready "
                    + "within 0.05 s"
            ])
    }

    @Test func `a negotiation of several exchanges may arrive byte by byte`() throws {
        let findings = try talk { peer in
            for byte in Array("WHO\nLAST\n".utf8) { try peer.send([byte]) }
            let said = try peer.readLine() + peer.readLine() + peer.readLine()
            for byte in Array(said.utf8) { try peer.send([byte]) }
        }
        #expect(findings == ["connecting", "connected", "open", "TO behindMETHANKS"])
    }

    @Test func `a refusal fails the channel with the proxy's words`() throws {
        let findings = try talk { try $0.send("NO\n") }
        #expect(findings == ["connecting", "connected", "failed", "the proxy says NO"])
    }

    @Test func `a proxy that closes fails the channel, which says after how many bytes`() throws {
        let findings = try talk { peer in
            _ = try peer.readLine()
            try peer.send("abc")
        }
        #expect(findings.suffix(2) == ["failed", "the proxy has closed after 3 bytes"])
    }

    @Test func `a proxy that resets the connection fails the channel with its address`() throws {
        let findings = try talk { peer in
            _ = try peer.readLine()
            peer.reset()
        }
        #expect(findings.last?.contains("the connection to 127.0.0.1, port ") == true)
        #expect(findings.last?.contains("ECONNRESET") == true)
    }

    @Test func `a proxy that talks without end is given up`() throws {
        let findings = try talk { peer in
            while true { try peer.send([UInt8](repeating: 120, count: 10_000)) }
        }
        #expect(
            findings.last
                == "the proxy 127.0.0.1 says more than 65536 bytes before it lets a connection through")
    }

    /// The failure of a channel that is opened to a host by the route.
    private func failure(by makeRoute: @escaping @Sendable () -> ProxyRoute) throws -> String {
        let findings = try onStreamThread { loop in
            let talk = Conversation(SocketChannel(.init(host: "behind", port: 99, route: makeRoute())))
            talk.open(in: loop)
            try loop.run { talk.failure != nil }
            return [talk.failure?.description ?? "no failure"]
        }
        return findings.joined()
    }

    @Test func `a proxy that cannot be reached is named`() throws {
        let port = try TestListener().port
        let failure = try failure {
            ProxyRoute(host: "127.0.0.1", port: Int(port), negotiation: LineNegotiation("behind"))
        }
        #expect(
            failure
                == "the proxy on the way to behind cannot be used: could not connect to 127.0.0.1, port \(port): "
                + "Connection refused (ECONNREFUSED)")
    }

    @Test func `TLS settings for the proxy that cannot be used are said to be the proxy's`() throws {
        let server = try TestServer { $0.waitForEnd() }
        defer { server.stop() }
        let failure = try failure { [port = server.port] in
            var settings = TLSSettings()
            settings.ciphers = "none such"
            return ProxyRoute(
                host: "127.0.0.1", port: Int(port), tls: settings, negotiation: LineNegotiation("behind"))
        }
        #expect(
            failure == "the proxy on the way to behind cannot be used: "
                + "TLSSettings.ciphers cannot be used: no cipher match")
    }

    @Test func `TLS is spoken with the host behind the proxy`() throws {
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let proxy = try TestServer { peer in
            _ = try peer.readLine()
            try peer.send("OK\n")
            try peer.relay(to: port)
        }
        defer { proxy.stop() }
        let findings = try onStreamThread { [port = proxy.port] loop in
            let route = ProxyRoute(
                host: "127.0.0.1", port: Int(port), negotiation: LineNegotiation("behind"))
            let talk = Conversation(
                SocketChannel(.init(host: "localhost", port: 99, tls: .test, route: route)))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            if let failure = talk.failure { return [failure.description] }
            talk.say("hello")
            try loop.run { talk.text == "hello" }
            let words = talk.words.prefix(4)
            talk.channel.close()
            return Array(words)
        }
        #expect(findings == ["connecting", "connected", "secured", "open"])
    }

    /// The socket is silent once the record was read: what is left of it stays in OpenSSL.
    @Test(arguments: ["WHO\nLAST\n220 hello\n", "OK\n220 hello\n"], [false, true])
    func `all bytes of a proxy in one TLS record are read`(record: String, isAwaited: Bool) throws {
        let (server, port) = try PythonServer.start(.told, record)
        defer { server.terminate() }
        server.tell("go")
        let findings = try onStreamThread { loop in
            let route = ProxyRoute(
                host: "localhost", port: Int(port), tls: .test, negotiation: LineNegotiation("behind"))
            let talk = Conversation(SocketChannel(.init(host: "behind", port: 99, route: route)))
            talk.channel.wantsRead = isAwaited
            talk.open(in: loop)
            try loop.run { talk.failure != nil || talk.channel.isOpen }
            talk.channel.wantsRead = true
            try loop.run { talk.failure != nil || !talk.received.isEmpty }
            talk.channel.close()
            return [talk.failure?.description ?? talk.text]
        }
        #expect(findings == ["220 hello\n"])
    }
}
