import Rondo
import RondoTestSupport
import Testing

/// Challenges that come from TLS.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct TLSChallengeTests {
    private final class Judge: NSObject, Recording, Sendable {
        let recorder = Recorder()
        let seen = Box<[String]>([])
        private let answer: @Sendable (URLAuthenticationChallenge) -> Void

        init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Void) { self.answer = answer }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            let space = challenge.protectionSpace
            #expect(
                (space.serverTrust != nil)
                    == (space.authenticationMethod == NSURLAuthenticationMethodServerTrust))
            let trust = space.serverTrust.map { " trusted \($0.isTrusted)" } ?? ""
            seen.mutate {
                $0.append(
                    space.authenticationMethod.replacingOccurrences(
                        of: "NSURLAuthenticationMethod", with: "") + trust)
            }
            answer(challenge)
        }
    }

    private static func run(
        _ port: UInt16, _ delegate: any URLConnectionDelegate & Sendable, trusts: Bool = true,
        path: String = "/"
    ) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(
                request: URLRequest(url: url("https://localhost:\(port)\(path)")), delegate: delegate,
                startImmediately: false)
            if trusts { connection?.trustTestAuthority() }
            connection?.start()
            return loop.runOut()
        }
        #expect(ended == .finished)
    }

    @Test func `UC-52 server trust is asked, and the default handling is that of the settings`() throws {
        let (server, port) = try OpenSSLPages.start()
        let judge = Judge { $0.sender?.performDefaultHandling(for: $0) }
        try Self.run(port, judge)
        #expect(judge.seen.value == ["ServerTrust trusted true"])
        #expect(judge.recorder.response?.statusCode == 200)
        let doubting = Judge { $0.sender?.performDefaultHandling(for: $0) }
        try Self.run(port, doubting, trusts: false)
        #expect(doubting.seen.value.last == "ServerTrust trusted false")
        #expect(doubting.recorder.calls.first?.hasPrefix("fail -120") == true)
        server.terminate()
    }

    @Test func `UC-47 a response of a server that the delegate has accepted is not stored for other loads`()
        throws
    {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nCache-Control: max-age=100\\r\\n"
                b"Connection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
        defer { server.terminate() }
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let target = url("https://localhost:\(port)/kept")
        for isKnown in [false, true] {
            let judge = Judge { challenge in
                guard let trust = challenge.protectionSpace.serverTrust else { return }
                challenge.sender?.use(URLCredential(trust: trust), for: challenge)
            }
            try onLoopThread { loop in
                let connection = URLConnection(
                    request: URLRequest(url: target), delegate: judge, startImmediately: false)
                connection?.configuration.cache = cache
                if isKnown { connection?.trustTestAuthority() }
                connection?.start()
                loop.runOut()
            }
            #expect(judge.recorder.response?.statusCode == 200)
            #expect((cache.cachedResponse(for: URLRequest(url: target)) != nil) == isKnown)
        }
    }

    /// Has an entry that is always asked about, and a cookie; a 304 makes the entry fresh and gives it a field.
    private static func validating(
        _ kind: TestCertificates.Kind = .good
    ) throws -> (TestServerProcess, UInt16) {
        try Stranger.pythonTLS(
            kind,
            """
            asked = globals().get("asked", 0)
            if b"If-None-Match" in request:
                asked += 1
                tls.sendall(b"HTTP/1.1 304 Not Modified\\r\\nCache-Control: max-age=100\\r\\n"
                    b"X-Asked: %d\\r\\nConnection: close\\r\\n\\r\\n" % asked)
            else:
                tls.sendall(b"HTTP/1.1 200 OK\\r\\nCache-Control: no-cache\\r\\nETag: \\"1\\"\\r\\n"
                    b"Set-Cookie: who=me\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
    }

    @Test func `UC-47 a 304 of a server that the delegate has accepted counts for this load alone`() throws {
        let (server, port) = try Self.validating()
        defer { server.terminate() }
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let request = URLRequest(url: url("https://localhost:\(port)/kept"))
        let kept = { (cache.cachedResponse(for: request)?.response as? HTTPURLResponse)?.allHeaderFields }
        for (isKnown, asked) in [(true, nil), (false, "1"), (true, "2")] as [(Bool, String?)] {
            let judge = Judge { challenge in
                guard let trust = challenge.protectionSpace.serverTrust else { return }
                #expect(trust.isTrusted == isKnown)
                challenge.sender?.use(URLCredential(trust: trust), for: challenge)
            }
            try onLoopThread { loop in
                let connection = URLConnection(request: request, delegate: judge, startImmediately: false)
                connection?.configuration.cache = cache
                if isKnown { connection?.trustTestAuthority() }
                connection?.start()
                loop.runOut()
            }
            // It is what this load gets, whose delegate has let the server through.
            #expect(judge.recorder.calls == ["response 200", "data", "finish"])
            #expect(judge.recorder.response?.value(forHTTPHeaderField: "X-Asked") == asked)
            #expect(kept()?["X-Asked"] as? String == (isKnown ? asked : nil))
        }
    }

    @Test func `UC-47 a response of a server that the settings have accepted is not stored for other loads`()
        throws
    {
        let (server, port) = try Self.validating()
        defer { server.terminate() }
        let request = URLRequest(url: url("https://localhost:\(port)/kept"))
        let ways: [(isKept: Bool, (inout TLSSettings) -> Void)] = [
            (false, { $0.verification = .none }), (false, { $0.tolerance = .anyRoot }),
            (false, { $0.trustHandler = TLSTrustHandler { $0.accept() } }),
            (
                true,
                {
                    $0.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
                    $0.trustHandler = TLSTrustHandler { $0.accept() }
                }
            ),
        ]
        for (isKept, change) in ways {
            var settings = TLSSettings()
            change(&settings)
            // The second one takes up the session of the first, whose checks are not made again.
            for _ in 0..<2 {
                let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
                let recorder = try load(request) { [settings] connection in
                    connection.configuration.cache = cache
                    connection.configuration.tls = settings
                }
                #expect(recorder.calls == ["response 200", "data", "finish"])
                #expect((cache.cachedResponse(for: request) != nil) == isKept)
            }
        }
    }

    @Test func `UC-47 a response of a server whose name was not checked is not stored for other loads`()
        throws
    {
        let (server, port) = try Self.validating(.wrongHost)
        defer { server.terminate() }
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let request = URLRequest(url: url("https://localhost:\(port)/kept"))
        let recorder = try load(request) { connection in
            connection.configuration.cache = cache
            connection.trustTestAuthority()
            connection.configuration.tls.verification = .withoutHostName
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(cache.cachedResponse(for: request) == nil)
    }

    @Test func `RFC 5861 4 no entry stands in for a server that the delegate or the settings reject`() throws
    {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nCache-Control: max-age=0, stale-if-error=100\\r\\n"
                b"ETag: \\"1\\"\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let request = URLRequest(url: url("https://localhost:\(port)/kept"))
        let calls = { (handler: TLSTrustHandler?) in
            try load(request) { connection in
                connection.configuration.cache = cache
                connection.trustTestAuthority()
                connection.configuration.tls.trustHandler = handler
            }.calls
        }
        #expect(try calls(nil) == ["response 200", "data", "finish"])
        #expect(try calls(TLSTrustHandler { $0.reject() }) == ["fail -1202"])
        let judge = Judge { $0.sender?.rejectProtectionSpaceAndContinue(with: $0) }
        try onLoopThread { loop in
            let connection = URLConnection(request: request, delegate: judge, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.trustTestAuthority()
            connection?.start()
            loop.runOut()
        }
        #expect(judge.recorder.calls == ["fail -1202"])
        // The entry is there, for a server that cannot be reached.
        server.terminate()
        #expect(try calls(nil) == ["response 200", "data", "finish"])
    }

    /// As browsers have it: a user who lets a server of its own through wants to be logged in there.
    @Test func `UC-57 a server that was let through sets cookies as others do`() throws {
        let (server, port) = try Self.validating()
        defer { server.terminate() }
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        storage.cookieAcceptPolicy = .always
        let judge = Judge { challenge in
            guard let trust = challenge.protectionSpace.serverTrust else { return }
            challenge.sender?.use(URLCredential(trust: trust), for: challenge)
        }
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: url("https://localhost:\(port)/")), delegate: judge,
                startImmediately: false)
            connection?.configuration.cookieStorage = storage
            connection?.configuration.cache = nil
            connection?.start()
            loop.runOut()
        }
        #expect(judge.seen.value == ["ServerTrust trusted false"])
        #expect(storage.cookies?.map(\.name) == ["who"])
    }

    @Test func `UC-47 trust may be given later, and holds for this load alone`() throws {
        let (server, port) = try OpenSSLPages.start()
        let judge = Judge { challenge in
            let held = Held(challenge: challenge)
            Thread.detachNewThread {
                let challenge = held.challenge
                if let trust = challenge.protectionSpace.serverTrust {
                    challenge.sender?.use(URLCredential(trust: trust), for: challenge)
                }
            }
        }
        try Self.run(port, judge, trusts: false)
        #expect(judge.recorder.response?.statusCode == 200)
        // No other load has agreed to it: neither its connection nor its session is theirs.
        let recorder = Recorder()
        try Self.run(port, recorder, trusts: false)
        #expect(recorder.calls.first?.hasPrefix("fail -120") == true)
        server.terminate()
    }

    @Test func `UC-47 a connection that a delegate has let through serves no other load`() throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            import threading
            def serve(tls):
                try:
                    while True:
                        tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
                        if not tls.recv(65536): break
                except OSError: pass
            threading.Thread(target=serve, args=(tls,), daemon=True).start()
            """)
        defer { server.terminate() }
        for _ in 0..<2 {
            let judge = Judge { challenge in
                if let trust = challenge.protectionSpace.serverTrust {
                    challenge.sender?.use(URLCredential(trust: trust), for: challenge)
                }
            }
            try Self.run(port, judge, trusts: false)
            #expect(judge.recorder.response?.statusCode == 200)
            // Each load is asked for itself.
            #expect(judge.seen.value == ["ServerTrust trusted false"])
            let recorder = Recorder()
            try Self.run(port, recorder, trusts: false)
            #expect(recorder.calls.first?.hasPrefix("fail -120") == true)
        }
    }

    /// Redirects, and wants a password; from the second connection on, a client certificate too.
    private static let manyQuestions = """
        context.load_verify_locations("\(TestCertificates.shared.authorityPath)")
        context.verify_mode = ssl.CERT_OPTIONAL
        if b"GET / " in request: head = b"302 Found\\r\\nLocation: /next"
        elif b"Authorization" not in request: head = b"401 No\\r\\nWWW-Authenticate: Basic realm=\\"r\\""
        elif not tls.getpeercert(True): head = b"403 No"
        else: head = b"200 OK"
        tls.sendall(b"HTTP/1.1 " + head + b"\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n")
        """

    @Test func `UC-52 a load asks once whether a server is accepted, and for an identity`() throws {
        let (server, port) = try Stranger.pythonTLS(.good, Self.manyQuestions)
        defer { server.terminate() }
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.good), privateKeyFile: certificates.keyPath)
        let answer: @Sendable (URLAuthenticationChallenge) -> Void = { challenge in
            let space = challenge.protectionSpace
            let credential: URLCredential =
                if let trust = space.serverTrust {
                    URLCredential(trust: trust)
                } else if space.identityRequest != nil {
                    TLSCredential(identity: identity)
                } else {
                    URLCredential(user: "user", password: "pass", persistence: .none)
                }
            challenge.sender?.use(credential, for: challenge)
        }
        // From its second connection on, the server sends its authority's certificate as well, which is another problem.
        let first = Judge(answer)
        try Self.run(port, first, trusts: false)
        #expect(first.seen.value.count { $0.hasPrefix("ServerTrust") } == 2, "\(first.seen.value)")
        // Each load is asked for itself, whatever another one has answered.
        for _ in 0..<2 {
            let judge = Judge(answer)
            try Self.run(port, judge, trusts: false)
            #expect(judge.recorder.response?.statusCode == 200)
            #expect(judge.seen.value == ["ServerTrust trusted false", "ClientCertificate", "HTTPBasic"])
        }
    }

    @Test func `UC-52 a load whose server shows another certificate is asked about that one`() throws {
        let certificates = TestCertificates.shared
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            number = globals().get("number", 0) + 1
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("\(certificates.path(.untrusted))", "\(certificates.keyPath(.untrusted))")
            head = b"302 Found\\r\\nLocation: /%d" % number if number < 4 else b"200 OK"
            tls.sendall(b"HTTP/1.1 " + head + b"\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n")
            """)
        defer { server.terminate() }
        let seen = Box<[String]>([])
        let judge = Judge { challenge in
            guard let trust = challenge.protectionSpace.serverTrust else { return }
            seen.mutate { $0.append(trust.certificates[0].issuer) }
            challenge.sender?.use(URLCredential(trust: trust), for: challenge)
        }
        try Self.run(port, judge, trusts: false)
        #expect(judge.recorder.response?.statusCode == 200)
        #expect(seen.value == ["CN=Rondo Test Authority", "CN=Stranger Authority"])
    }

    /// Passes the first two connections on to one port, and the others to another one.
    private static let passOn = """
        import socket, sys, threading
        listener = socket.create_server(("127.0.0.1", 0))
        print("PORT", listener.getsockname()[1], flush=True)
        def copy(source, target):
            try:
                while data := source.recv(65536): target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError: pass
        for number in range(sys.maxsize):
            ends = [listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1 + (number > 1)])))]
            for way in ends, ends[::-1]: threading.Thread(target=copy, args=way, daemon=True).start()
        """

    @Test func `UC-52 a load whose server names other authorities is asked again for an identity`() throws {
        let certificates = TestCertificates.shared
        let folder = try Stranger.Directory()
        for number in 1...3 {
            let head = "HTTP/1.1 302 Found\r\nLocation: /\(number + 1)\r\nContent-Length: 0\r\n\r\n"
            try folder.write(Data(head.utf8), to: "\(number)")
        }
        try folder.write(Data("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8), to: "4")
        let servers = try [certificates.authorityPath, certificates.strangerPath].map { path in
            try TestServerProcess([
                "sh", "-c", "cd \"$0\" && exec openssl s_server \"$@\"", folder.path, "-accept",
                "127.0.0.1:0",
                "-cert", certificates.path(.good), "-key", certificates.keyPath, "-HTTP", "-verify", "1",
                "-CAfile", path,
            ])
        }
        defer { for server in servers { server.terminate() } }
        let ports = try servers.map { "\(try $0.port(after: "ACCEPT "))" }
        let front = try TestServerProcess(["python3", "-c", Self.passOn] + ports)
        defer { front.terminate() }
        let identity = try TLSIdentity(
            chainFile: certificates.path(.good), privateKeyFile: certificates.keyPath)
        let seen = Box<[[String]]>([])
        let judge = Judge { challenge in
            guard let request = challenge.protectionSpace.identityRequest else {
                challenge.sender?.performDefaultHandling(for: challenge)
                return
            }
            seen.mutate { $0.append(request.issuers) }
            challenge.sender?.use(TLSCredential(identity: identity), for: challenge)
        }
        try Self.run(try front.port(after: "PORT "), judge, path: "/1")
        #expect(judge.recorder.response?.statusCode == 200, "\(judge.recorder.calls)")
        // Each server has asked twice.
        #expect(seen.value == [["CN=Rondo Test Authority"], ["CN=Stranger Authority"]])
    }

    private struct Held: @unchecked Sendable {
        let challenge: URLAuthenticationChallenge
    }

    @Test func `UC-52 a name and a password as the answer about server trust leave the default`() throws {
        let (server, port) = try OpenSSLPages.start()
        let careless = Judge { challenge in
            let credential = URLCredential(user: "user", password: "pass", persistence: .none)
            challenge.sender?.use(credential, for: challenge)
        }
        try Self.run(port, careless, trusts: false)
        #expect(careless.recorder.calls.first?.hasPrefix("fail -120") == true)
        try Self.run(port, careless)
        #expect(careless.recorder.response?.statusCode == 200)
        server.terminate()
    }

    @Test func `UC-48 a server may be refused, and a challenge cancelled`() throws {
        let (server, port) = try OpenSSLPages.start()
        let refusing = Judge { $0.sender?.rejectProtectionSpaceAndContinue(with: $0) }
        try Self.run(port, refusing)
        #expect(refusing.recorder.calls.first?.hasPrefix("fail -120") == true)
        let cancelling = Judge { $0.sender?.cancel($0) }
        try Self.run(port, cancelling)
        #expect(cancelling.recorder.calls == ["fail -1012"])
        server.terminate()
    }

    /// Has the older method alone, which is no answer to questions of TLS.
    private final class Older: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()

        func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
            log.note("challenge")
            challenge.sender?.cancel(challenge)
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            log.note("response")
        }
    }

    @Test
    func `UC-45 without canAuthenticateAgainstProtectionSpace the older method gets no server trust`() throws
    {
        let (server, port) = try OpenSSLPages.start()
        let older = Older()
        try Self.run(port, older)
        #expect(older.log.entries == ["response"])
        server.terminate()
    }

    @Test func `UC-52 a server that asks for a certificate gets the identity that is chosen`() throws {
        let certificates = TestCertificates.shared
        let (server, port) = try OpenSSLPages.start(
            .good, ["-Verify", "1", "-CAfile", certificates.authorityPath, "-verify_return_error"])
        let identity = try TLSIdentity(
            chainFile: certificates.path(.good), privateKeyFile: certificates.keyPath)
        let judge = Judge { challenge in
            if challenge.protectionSpace.identityRequest != nil {
                challenge.sender?.use(TLSCredential(identity: identity), for: challenge)
            } else {
                challenge.sender?.performDefaultHandling(for: challenge)
            }
        }
        try Self.run(port, judge)
        #expect(judge.seen.value == ["ServerTrust trusted true", "ClientCertificate"])
        #expect(judge.recorder.response?.statusCode == 200)
        let without = Judge { $0.sender?.performDefaultHandling(for: $0) }
        try Self.run(port, without)
        #expect(without.recorder.calls.first?.hasPrefix("fail") == true)
        server.terminate()
    }
}
