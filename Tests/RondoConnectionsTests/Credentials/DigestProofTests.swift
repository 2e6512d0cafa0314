import Rondo
import RondoStreams
import RondoTestSupport
import Testing

/// Digest beyond the password: bodies that are protected too, and servers that have to know it as well.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DigestProofTests {
    /// Answers challenges with `user` and `pass`, once; gives `streams` where a new body is wanted.
    private final class Knowing: NSObject, Recording, Sendable {
        let recorder = Recorder()
        let user: String

        init(user: String = "user") { self.user = user }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            guard challenge.previousFailureCount == 0 else {
                challenge.sender?.continueWithoutCredential(for: challenge)
                return
            }
            challenge.sender?.use(
                URLCredential(user: user, password: "pass", persistence: .none), for: challenge)
        }
    }

    /// A stranger's reckoning of RFC 7616 §3.4 and §3.5. It answers how long the request's body was, and proves
    /// that it knows the password: rightly, wrongly, for other content, or not at all.
    private static func server(
        _ protection: String, proof: String
    ) throws -> (server: TestServerProcess, port: UInt16) {
        let script = """
            import hashlib, http.server, re, sys
            qop, proof = sys.argv[1:]
            H = lambda s: hashlib.sha256(s if isinstance(s, bytes) else s.encode()).hexdigest()
            secret = H("user:d:pass")
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
                def body(self):
                    if self.headers.get("Transfer-Encoding") != "chunked":
                        return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                    return body
                def do_GET(self):
                    body = self.body()
                    proxy = "Proxy-" if self.command == "CONNECT" or self.path.startswith("http:") else ""
                    p = {k: v.strip('"') for k, v in re.findall(
                        r'(\\w+)=("[^"]*"|[^",]+)', self.headers.get(proxy + "Authorization", ""))}
                    def response(subject, content):
                        if qop == "auth-int": subject += ":" + H(content)
                        return H(f"{secret}:{p['nonce']}:{p['nc']}:{p['cnonce']}:{qop}:{H(subject)}")
                    good = p and p["qop"] == qop and p["uri"] == self.path \\
                        and p["response"] == response(f"{self.command}:{self.path}", body)
                    answer = b"" if self.command == "CONNECT" else b"in %d" % len(body)
                    self.send_response(200 if good else 407 if proxy else 401)
                    if not good:
                        answer = b"out"
                        self.send_header(
                            proxy + "Authenticate" if proxy else "WWW-Authenticate",
                            f'Digest realm="d", nonce="n", qop="{qop}", algorithm=SHA-256')
                    elif proof != "none":
                        rspauth = response(f":{self.path}", answer)
                        if proof == "wrong": rspauth = "0" * 64
                        if proof == "altered": answer = answer.upper()
                        self.send_header(
                            proxy + "Authentication-Info",
                            f'rspauth="{rspauth}", qop={qop}, nc={p["nc"]}, cnonce="{p["cnonce"]}"')
                    if self.command != "CONNECT" or not good:
                        self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    if self.command != "HEAD": self.wfile.write(answer)
                    if self.command == "CONNECT": self.close_connection = True
                do_HEAD = do_POST = do_CONNECT = do_GET
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print("PORT", server.server_address[1], flush=True)
            server.serve_forever()
            """
        let server = try TestServerProcess(["python3", "-c", script, protection, proof])
        return (server, try server.port(after: "PORT "))
    }

    private static func run(
        _ request: URLRequest, _ delegate: any URLConnectionDelegate & Sendable,
        _ configure: @escaping @Sendable (URLConnection) -> Void = { _ in }
    ) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            if let connection { configure(connection) }
            connection?.start()
            return loop.runOut()
        }
        #expect(ended == .finished)
    }

    @Test(arguments: [
        ("auth", "none", ["response 200", "data", "finish"]),
        ("auth", "right", ["response 200", "data", "finish"]), ("auth", "wrong", ["fail -1011"]),
        ("auth-int", "none", ["response 200", "data", "finish"]),
        ("auth-int", "right", ["response 200", "data", "finish"]),
        ("auth-int", "wrong", ["response 200", "data", "fail -1011"]),
        ("auth-int", "altered", ["response 200", "data", "fail -1011"]),
    ])
    func `RFC 7616 3.5 a server that claims to know the password has to`(
        protection: String, proof: String, calls: [String]
    ) throws {
        let (server, port) = try Self.server(protection, proof: proof)
        let delegate = Knowing()
        try Self.run(URLRequest(url: url("http://127.0.0.1:\(port)/x?y=z")), delegate)
        #expect(delegate.recorder.calls == calls)
        if calls.last != "finish" {
            #expect(delegate.recorder.error?.localizedDescription.contains("rspauth") == true)
        }
        // A body that is none is protected as one of no bytes.
        var head = URLRequest(url: url("http://127.0.0.1:\(port)/"))
        head.httpMethod = "HEAD"
        if protection == "auth" {
            let other = Knowing()
            try Self.run(head, other)
            #expect(other.recorder.calls.last == calls.last)
        }
        server.terminate()
    }

    @Test(arguments: ["none", "right", "wrong"])
    func `RFC 7616 3.5 a proxy that claims to know the password has to, for a tunnel as well`(
        proof: String
    ) throws {
        let (server, port) = try Self.server("auth", proof: proof)
        let choice = URLConnection.ProxyChoice.by(
            StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(port)))
        let plain = Knowing()
        try Self.run(URLRequest(url: url("http://host.example/")), plain) { $0.configuration.proxy = choice }
        #expect(
            plain.recorder.calls == (proof == "wrong" ? ["fail -1011"] : ["response 200", "data", "finish"]))
        let tunnelled = Knowing()
        try Self.run(URLRequest(url: url("https://host.example/")), tunnelled) {
            $0.configuration.proxy = choice
        }
        // No server is behind the tunnel.
        let text = tunnelled.recorder.error?.localizedDescription ?? ""
        #expect(text.contains("failed to prove that it knows the password") == (proof == "wrong"), "\(text)")
        server.terminate()
    }

    @Test func `RFC 7616 3.4.3 auth-int protects a body of memory, and one of a stream`() throws {
        let (server, port) = try Self.server("auth-int", proof: "right")
        var request = URLRequest(url: url("http://127.0.0.1:\(port)/"))
        request.httpMethod = "POST"
        request.httpBody = Data("some".utf8)
        let memory = Knowing()
        try Self.run(request, memory)
        #expect(memory.recorder.text == "in 4")
        // Longer than what is kept in memory, and than what is hashed in one turn.
        for length in [700_000, 2_500_000] {
            request.httpBodyStream = InputStream(data: Data(longText(length).utf8))
            let stream = Knowing()
            try Self.run(request, stream)
            #expect(stream.recorder.text == "in \(length)")
        }
        server.terminate()
    }

    /// Gives a new body whenever one is wanted.
    private final class Renewing: NSObject, URLConnectionDataDelegate, Sendable {
        let knowing = Knowing()
        let asked = Box(0)

        func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
            asked.mutate { $0 += 1 }
            return InputStream(data: Data(longText(1_000).utf8))
        }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            knowing.connection(connection, willSendRequestFor: challenge)
        }

        func connection(_ connection: URLConnection, didReceive data: Data) {
            knowing.connection(connection, didReceive: data)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            knowing.connectionDidFinishLoading(connection)
        }
    }

    /// A hash goes before the bytes that it is of: they are kept for so long even where the delegate could give
    /// them again, which is asked for no more than the challenge makes necessary.
    @Test func `RFC 7616 3.4.3 UC-40 a stream is kept for its hash, whatever the delegate can do`() throws {
        let (server, port) = try Self.server("auth-int", proof: "right")
        var request = URLRequest(url: url("http://127.0.0.1:\(port)/"))
        request.httpMethod = "POST"
        request.httpBodyStream = InputStream(data: Data(longText(1_000).utf8))
        let delegate = Renewing()
        try Self.run(request, delegate)
        #expect(delegate.knowing.recorder.text == "in 1000")
        #expect(delegate.asked.value == 1)
        server.terminate()
    }

    @Test func `RFC 7616 3.4.3 a stream that is fed meanwhile is waited for`() throws {
        let (server, port) = try Self.server("auth-int", proof: "right")
        let delegate = Knowing()
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let piece = Array(longText(100_000).utf8)
            var request = URLRequest(url: url("http://127.0.0.1:\(port)/"))
            request.httpMethod = "POST"
            request.httpBodyStream = LateStream([nil, piece, nil, nil, piece, piece])
            _ = URLConnection(request: request, delegate: delegate)
            return loop.runOut()
        }
        #expect(ended == .finished)
        #expect(delegate.recorder.text == "in 300000")
        server.terminate()
    }

    @Test func `a diagnostic says why a credential cannot be sent`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""], body: "out")
            }
        }
        let reasons = Box<[String]>([])
        let delegate = Knowing(user: "a:b")
        try Self.run(URLRequest(url: server.url()), delegate) {
            $0.configuration.onDiagnostic = { diagnostic in
                guard diagnostic.kind == .unusableCredential, let reason = diagnostic.reason else { return }
                reasons.mutate { $0.append(reason) }
            }
        }
        #expect(delegate.recorder.calls == ["response 401", "data", "finish"])
        #expect(reasons.value.count == 1)
        #expect(reasons.value.first?.contains("colon") == true)
        server.stop()
    }
}
