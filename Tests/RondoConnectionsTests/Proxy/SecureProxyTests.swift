import Rondo
import RondoHTTP
import RondoStreams
import RondoTestSupport
import Testing

/// Loads by proxies that are spoken to by TLS.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct SecureProxyTests {
    /// The settings for a proxy of the test authority.
    private static var trusting: TLSSettings {
        var tls = TLSSettings()
        tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        return tls
    }

    private static func by(
        _ port: UInt16, user: String? = nil, tls: TLSSettings = trusting
    ) -> URLConnection.ProxyChoice {
        .by(
            StreamProxy(
                .httpConnect, host: "127.0.0.1", port: Int(port), userName: user,
                password: user.map { _ in "pass" }, tls: tls))
    }

    /// Answers with what it has read: how much, and a large body.
    private static let server = """
        data = b""
        while not data.endswith(b"END"):
            piece = tls.recv(65536)
            if not piece: break
            data += piece
        import hashlib
        digest = hashlib.sha256(data[-1000000:]).hexdigest().encode()
        body = digest + b"0123456789abcdef" * 250000
        tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        """

    @Test func `squid: an http request goes to an https proxy whole, by TLS`() throws {
        let server = try TestServer.answering { request in "\(request.method) \(request.target)" }
        let proxy = try Stranger.squid(secured: true)
        let choice = Self.by(proxy.port)
        let recorder = try load(server.url("/a?b=c")) { $0.configuration.proxy = choice }
        #expect(recorder.text == "GET /a?b=c")
        #expect(server.requests.first?.value("Via")?.contains("squid") == true)
        server.stop()
        proxy.terminate()
    }

    @Test func `squid: TLS with the server goes through the TLS with the proxy, much of it both ways`() throws
    {
        let proxy = try Stranger.squid(secured: true)
        let choice = Self.by(proxy.port)
        let (server, port) = try Stranger.pythonTLS(.good, Self.server)
        var request = URLRequest(url: url("https://localhost:\(port)/"))
        request.httpMethod = "POST"
        let body = Data((longText(4_000_000) + "END").utf8)
        request.httpBody = body
        let secured = Box<[String]>([])
        let recorder = try load(request) {
            $0.trustTestAuthority()
            $0.configuration.proxy = choice
            $0.configuration.onDiagnostic = { diagnostic in
                if let subject = diagnostic.subject { secured.mutate { $0.append(subject) } }
            }
        }
        #expect(recorder.response?.statusCode == 200)
        let digest = DigestHash.sha256.hexadecimal(of: body.suffix(1_000_000)) ?? ""
        #expect(recorder.hasBody(digest + String(repeating: "0123456789abcdef", count: 250_000)))
        // Of the proxy first, then of the server.
        #expect(secured.value.count == 2)
        server.terminate()
        proxy.terminate()
    }

    @Test func `a tunnel through TLS is kept and used again`() throws {
        let proxy = try Stranger.squid(secured: true)
        let choice = Self.by(proxy.port)
        let directory = try Stranger.Directory()
        try directory.write(Data("first".utf8), to: "a")
        let nginx = try Stranger.nginx(directory: directory.path)
        let reused = Box(0)
        // Not from the cache, in which a file is fresh for a while.
        var request = URLRequest(url: url("https://localhost:\(nginx.https)/a"))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        for _ in 0..<3 {
            let recorder = try load(request) {
                $0.trustTestAuthority()
                $0.configuration.proxy = choice
                $0.configuration.onDiagnostic = { diagnostic in
                    if diagnostic.kind == .reusing { reused.mutate { $0 += 1 } }
                }
            }
            #expect(recorder.text == "first")
        }
        #expect(reused.value == 2)
        nginx.server.terminate()
        proxy.terminate()
    }

    @Test func `a proxy that cannot prove its identity gets nothing`() throws {
        let (proxy, port) = try Stranger.pythonTLS(.untrusted, "tls.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')")
        for text in ["http://host.example/", "https://host.example/"] {
            let recorder = try load(url(text)) { $0.configuration.proxy = Self.by(port, user: "user") }
            #expect(recorder.calls == ["fail -1203"])
            #expect(recorder.error?.localizedDescription.contains("127.0.0.1") == true)
        }
        // What is said about servers does not hold for proxies.
        let (server, secure) = try OpenSSLPages.start()
        let recorder = try load(url("https://localhost:\(secure)/")) {
            $0.configuration.tls.verification = .none
            $0.configuration.proxy = Self.by(port)
        }
        #expect(recorder.calls == ["fail -1203"])
        server.terminate()
        proxy.terminate()
    }

    @Test func `an https proxy's refusal may come in pieces, and its challenge is answered`() throws {
        // The head in records that are longer than what is looked at in one go, and in one that ends within it.
        let (proxy, port) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 407 Proxy Authentica")
            tls.sendall(b"tion Required\\r\\nProxy-Authenticate: Basic realm=\\"p\\"\\r\\n")
            tls.sendall(b"".join(b"X-%d: %s\\r\\n" % (i, b"x" * 4000) for i in range(4)))
            tls.sendall(b"Content-Length: 0\\r\\n\\r\\n")
            """)
        let recorder = try load(url("https://host.example/")) { $0.configuration.proxy = Self.by(port) }
        #expect(recorder.calls == ["response 407", "finish"])
        proxy.terminate()
    }

    @Test(arguments: [
        "", "tls.unwrap()", "tls.sendall(b'HTTP/1.1 2')", "tls.sendall(b'no HTTP' * 5000)",
        "socket.socket(fileno=os.dup(tls.fileno())).sendall(b'in plain text')",
    ])
    func `an https proxy that breaks off, or says what is none, fails the load`(script: String) throws {
        let (proxy, port) = try Stranger.pythonTLS(.good, script + "\ntls.close()\nconn.close()")
        let recorder = try load(url("https://host.example/")) { $0.configuration.proxy = Self.by(port) }
        #expect(recorder.calls.count == 1)
        #expect([-1004, -1005, -1200].contains(recorder.error?.errorCode), "\(recorder.calls)")
        proxy.terminate()
    }

    @Test func `a delegate is asked about the server, not about the proxy`() throws {
        let proxy = try Stranger.squid(secured: true)
        let (server, port) = try OpenSSLPages.start()
        let asked = Box<[String]>([])
        var tls = Self.trusting
        tls.trustHandler = TLSTrustHandler { trust in
            asked.mutate { $0.append("handler \(trust.host)") }
            trust.useDefault()
        }
        let choice = Self.by(proxy.port, tls: tls)
        final class Asked: NSObject, URLConnectionDataDelegate, Sendable {
            let spaces = Box<[String]>([])
            let status = Box(0)
            func connection(
                _ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge
            ) {
                let space = challenge.protectionSpace
                spaces.mutate { $0.append("\(space.authenticationMethod) \(space.host)") }
                challenge.sender?.performDefaultHandling(for: challenge)
            }
            func connection(_ connection: URLConnection, didReceive response: URLResponse) {
                status.value = (response as? HTTPURLResponse)?.statusCode ?? 0
            }
        }
        let delegate = Asked()
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(
                request: URLRequest(url: url("https://localhost:\(port)/")), delegate: delegate,
                startImmediately: false)
            connection?.trustTestAuthority()
            connection?.configuration.proxy = choice
            connection?.start()
            return loop.runOut()
        }
        #expect(ended == .finished)
        #expect(delegate.status.value == 200)
        #expect(delegate.spaces.value == ["NSURLAuthenticationMethodServerTrust localhost"])
        #expect(asked.value == ["handler 127.0.0.1"])
        server.terminate()
        proxy.terminate()
    }
}
