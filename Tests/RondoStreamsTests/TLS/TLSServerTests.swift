import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// The server's side, against `openssl s_client`, Python's ssl and our own client.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSServerTests {
    static var identity: TLSIdentity {
        get throws {
            let certificates = TestCertificates.shared
            return try TLSIdentity(
                chainFile: certificates.path(.good), privateKeyFile: certificates.keyPath)
        }
    }

    static func settings(_ change: (inout TLSSettings) -> Void = { _ in }) throws -> TLSSettings {
        var settings = TLSSettings.server(try identity)
        settings.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        change(&settings)
        return settings
    }

    /// `openssl s_client`, which sends what it is told and prints what it receives.
    private static func client(_ port: UInt16, _ options: [String] = []) throws -> TestServerProcess {
        try TestServerProcess(
            [
                "openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-servername", "localhost", "-CAfile",
                TestCertificates.shared.authorityPath, "-verify_return_error", "-verify_hostname",
                "localhost",
                "-brief", "-quiet",
            ] + options)
    }

    /// A server's end of a connection with a client, its handshake done.
    private func serve(
        _ settings: TLSSettings, _ options: [String] = []
    ) throws -> (BlockingTLSClient, TestServerProcess) {
        let listener = try TestListener()
        let client = try Self.client(listener.port, options)
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
        try server.handshake()
        return (server, client)
    }

    @Test(arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
    func `a server exchanges bytes with OpenSSL's s_client`(option: String, version: String) throws {
        let (server, client) = try serve(Self.settings(), [option])
        #expect(server.engine.version == version)
        #expect(server.engine.peerCertificates.isEmpty)
        client.tell("hello")
        #expect(try server.read().1 == Array("hello\n".utf8))
        try server.write(Array("HELLO\n".utf8))
        #expect(try client.line(after: "HELLO") == "")
        server.engine.shutdown()
        client.terminate()
    }

    @Test func `ST-43 a server needs an identity`() throws {
        var settings = TLSSettings()
        settings.role = .server
        let error = try #require(throws: TLSError.self) { try TLSContext(settings) }
        #expect(error.description.contains("TLSSettings.identity"))
    }

    @Test(arguments: [TLSSettings.Version.tls12, .tls13])
    func `versions are agreed upon or refused`(maximum: TLSSettings.Version) throws {
        let (server, client) = try serve(Self.settings { $0.maximumVersion = maximum })
        defer { client.terminate() }
        #expect(server.engine.version == (maximum == .tls12 ? "TLSv1.2" : "TLSv1.3"))
        let error = try #require(throws: TLSError.self) {
            _ = try serve(Self.settings { $0.minimumVersion = .tls13 }, ["-tls1_2"])
        }
        guard case .protocolVersion = error.reason else { throw error }
        #expect(error.description.contains("the client"))
    }

    @Test func `ALPN is the server's first that the client offers`() throws {
        let offer = ["-alpn", "spdy/1,http/1.1,h2"]
        let (server, client) = try serve(Self.settings { $0.alpn = ["h2", "http/1.1"] }, offer)
        #expect(server.engine.applicationProtocol == "h2")
        client.terminate()
        let (silent, other) = try serve(Self.settings { $0.alpn = ["h2"] })
        #expect(silent.engine.applicationProtocol == nil)
        other.terminate()
        #expect(throws: TLSError.self) { try serve(Self.settings { $0.alpn = ["smtp"] }, offer) }
    }

    @Test func `a client's certificate is asked for, checked and readable`() throws {
        let certificates = TestCertificates.shared
        let shown = ["-cert", certificates.path(.client), "-key", certificates.keyPath]
        for version in ["-tls1_2", "-tls1_3"] {
            let settings = try Self.settings { $0.clientCertificates = .required }
            let (server, client) = try serve(settings, shown + [version])
            #expect(server.engine.peerCertificates.first?.subject == "CN=a client")
            #expect(server.engine.peerSubject == "CN=a client")
            client.terminate()
        }
        let (server, client) = try serve(Self.settings { $0.clientCertificates = .requested })
        #expect(server.engine.peerCertificates.isEmpty)
        client.terminate()
    }

    @Test func `a client that speaks without TLS is told of as a client`() throws {
        let listener = try TestListener()
        let client = try TestServerProcess([
            "python3", "-c",
            "import socket; s = socket.create_connection(('127.0.0.1', \(listener.port))); "
                + "s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); s.recv(1)",
        ])
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: Self.settings())
        let error = try #require(throws: TLSError.self) { try server.handshake() }
        #expect(error.isServers)
        #expect(error.description.hasPrefix("what the client"))
        #expect(error.description.contains("sends is not TLS (http request). Check its URL"))
        client.terminate()
    }

    @Test(arguments: [("-tls1_2"), ("-tls1_3")])
    func `an identity that is made on the spot secures a connection, for the names it was made for`(
        version: String
    ) throws {
        let made = try TLSIdentity(selfSignedFor: ["localhost", "127.0.0.1", "::1"])
        let path = NSTemporaryDirectory() + "/rondo-made-\(UUID().uuidString).pem"
        try (made.certificates[0].pemRepresentation + made.privateKeyPEM).write(
            toFile: path, atomically: false, encoding: .utf8)
        defer { unlink(path) }
        // It comes back from its file as it was.
        let identity = try TLSIdentity(chainFile: path)
        #expect(identity == made && made.certificates[0].names == ["localhost", "127.0.0.1", "::1"])
        let (server, client) = try serve(TLSSettings.server(identity), ["-CAfile", path, version])
        client.tell("hello")
        #expect(try server.read().1 == Array("hello\n".utf8))
        client.terminate()
        for names in [[], [""], ["a,DNS:b"], ["a b"], ["é"]] {
            #expect(throws: TLSIdentityError.self) { try TLSIdentity(selfSignedFor: names) }
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a client without the certificate that is required is refused`(version: String) throws {
        let error = try #require(throws: TLSError.self) {
            try serve(Self.settings { $0.clientCertificates = .required }, [version])
        }
        #expect(error.reason == .certificateMissing)
        #expect(error.description.contains("showed no certificate"))
    }

    @Test(arguments: [
        (TestCertificates.Kind.expired, CertificateProblem.Kind.expired), (.untrusted, .unknownIssuer),
        (.serverOnly, .wrongUsage),
    ])
    func `a client's certificate is refused`(
        kind: TestCertificates.Kind, problem: CertificateProblem.Kind
    ) throws {
        let certificates = TestCertificates.shared
        let error = try #require(throws: TLSError.self) {
            try serve(
                Self.settings { $0.clientCertificates = .required },
                ["-cert", certificates.path(kind), "-key", certificates.keyPath])
        }
        guard case .certificate(let found) = error.reason else { throw error }
        #expect(found.kind == problem)
    }

    @Test func `our own client shows its identity`() throws {
        let listener = try TestListener()
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath)
        let findings = LoopThread<Findings> { [port = listener.port] _ in
            do {
                let client = try BlockingTLSClient(
                    port: port, settings: .test { $0.identity = identity })
                try client.handshake()
                try client.write([1, 2, 3])
                return ["\(try client.read().1)"]
            } catch {
                return ["\(error)"]
            }
        }
        let settings = try Self.settings { $0.clientCertificates = .required }
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
        try server.handshake()
        #expect(server.engine.peerSubject == "CN=a client")
        #expect(try server.read().1 == [1, 2, 3])
        try server.write([4])
        #expect(try findings.value() == ["[4]"])
    }

    @Test func `a Python client that has ended its direction still gets its bytes back`() throws {
        let listener = try TestListener()
        let client = try TestServerProcess([
            "python3", "-c", Self.pythonClient, "\(listener.port)", TestCertificates.shared.authorityPath,
        ])
        defer { client.terminate() }
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: Self.settings())
        try server.handshake()
        let (end, bytes) = try server.readToEnd()
        #expect(end == .end)
        try server.write(bytes)
        #expect(server.engine.shutdown() == .done)
        #expect(try client.line(after: "SAME ") == "True")
    }

    private static let pythonClient = """
        import socket, ssl, sys
        context = ssl.create_default_context(cafile=sys.argv[2])
        tls = context.wrap_socket(
            socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost")
        data = bytes(range(256)) * 400
        tls.sendall(data)
        # close_notify, and no FIN.
        tls.setblocking(False)
        try: tls.unwrap()
        except ssl.SSLError: pass
        tls.setblocking(True)
        answer = b""
        while len(answer) < len(data): answer += tls.read(65536)
        print("SAME", answer == data, flush=True)
        """

    @Test func `an adopted connection is served on a run loop`() throws {
        let listener = try TestListener()
        let settings = try Self.settings()
        let findings = try onStreamThread { loop in
            let client = try Self.client(listener.port)
            defer { client.terminate() }
            let accepted = listener.accept()
            let talk = Conversation(
                SocketChannel(
                    adopting: try Socket(adopting: accepted),
                    .init(host: "127.0.0.1", port: 0, tls: settings)))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.say("welcome\n")
            _ = try client.line(after: "welcome")
            client.tell("hello")
            try loop.run { !talk.received.isEmpty }
            let words = Array(talk.words.prefix(2))
            talk.channel.close()
            return words + [talk.text]
        }
        #expect(findings == ["secured", "open", "hello\n"])
    }

    /// A client of RFC 6066 §4 with little memory. OpenSSL then sends a record of 512 bytes for each call.
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `ST-23 a client that asks for short records gets all bytes`(version: String) throws {
        let (server, client) = try serve(Self.settings(), [version, "-maxfraglen", "512"])
        defer { client.terminate() }
        let text = (0..<6_000).map { "\($0)," }.joined()
        try server.write(Array("TEXT \(text)\n".utf8))
        #expect(try client.line(after: "TEXT ") == text)
        server.engine.shutdown()
    }
}
