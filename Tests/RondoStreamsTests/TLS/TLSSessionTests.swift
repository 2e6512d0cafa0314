import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Sessions that are taken up again, keys that are logged, and what can be asked of a connection.
@Suite(.timeLimit(.minutes(5))) struct TLSSessionTests {
    /// Whether the connections to one server, one after the other, were resumed.
    private func resumptions(
        _ options: [String], _ settings: [TLSSettings], asking: Bool = false
    ) throws -> [Bool] {
        let (server, port) = try OpenSSLServer.start(.good, options)
        defer { server.terminate() }
        return try settings.map { settings in
            let client = try BlockingTLSClient(port: port, settings: settings)
            client.engine.ask(forTrust: asking, forIdentity: false)
            try client.handshake { question in
                if case .trust(let trust) = question { trust.accept() }
            }
            try client.exchangeLine()
            client.engine.shutdown()
            #expect(client.engine.peerCertificates.first?.subject == "CN=localhost")
            return client.engine.isResumed
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `the next connection takes the session up`(version: String) throws {
        #expect(try resumptions([version], [.test, .test, .test]) == [false, true, true])
        #expect(try resumptions([version, "-no_ticket"], [.test, .test]).last == true)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `other settings, another port or a question prevent TLS resumption`(version: String) throws {
        let other = TLSSettings.test { $0.alpn = ["http/1.1"] }
        let off = TLSSettings.test { $0.resumesSessions = false }
        #expect(try resumptions([version], [.test, other, off, off]) == [false, false, false, false])
        #expect(try resumptions([version], [.test, .test], asking: true) == [false, false])
        #expect(try resumptions([version], [.test]) == [false])
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a session is kept if the program has left the decision to the settings`(version: String) throws {
        let (server, port) = try OpenSSLServer.start(.good, [version])
        defer { server.terminate() }
        let sessions = TLSSessionCache()
        var resumed: [Bool] = []
        for answer in [{ $0.accept() }, { $0.useDefault() }, nil] as [((TLSTrust) -> Void)?] {
            let client = try BlockingTLSClient(port: port, sessions: sessions)
            client.engine.ask(forTrust: answer != nil, forIdentity: false)
            try client.handshake { if case .trust(let trust) = $0 { answer?(trust) } }
            resumed.append(client.engine.isResumed)
            try client.exchangeLine()
        }
        #expect(resumed == [false, false, true])
        // What was accepted by a program was not kept, though the settings accept it as well.
        let other = TLSSessionCache()
        for answers in [true, false] {
            let client = try BlockingTLSClient(port: port, sessions: other)
            client.engine.ask(forTrust: answers, forIdentity: false)
            try client.handshake { if case .trust(let trust) = $0 { trust.accept() } }
            #expect(!client.engine.isResumed)
            try client.exchangeLine()
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a session ends with the certificates that were looked at`(version: String) throws {
        let start = time(nil)
        for (authority, tolerance, isResumed) in [
            (true, [], false), (true, .expiredCertificates, true), (false, .expiredRoots, true),
        ] as [(Bool, TLSSettings.Tolerance, Bool)] {
            let files = try Self.shortLived(leafEnds: authority, start: start)
            let server = try TestServerProcess([
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", files.path("leaf.pem"), "-key",
                files.path("key.pem"), "-rev", version,
            ])
            defer { server.terminate() }
            let port = try server.port(after: "ACCEPT ")
            let settings = TLSSettings.test {
                $0.certificateAuthorities = [.file(files.path("root.pem"))]
                $0.tolerance = tolerance
            }
            let now = Mutex(start)
            let sessions = TLSSessionCache { now.withLock { $0 } }
            // The certificate ends in 30 minutes, the session, as its server says, in two hours.
            var resumed: [Bool] = []
            for moment in [0, 60, 1_200, 3_600] {
                now.withLock { $0 = start + moment + 5 }
                let client = try BlockingTLSClient(port: port, settings: settings, sessions: sessions)
                try client.handshake()
                resumed.append(client.engine.isResumed)
                try client.exchangeLine()
            }
            #expect(resumed == [false, true, true, isResumed])
        }
    }

    /// An authority and a certificate for localhost of which one ends in half an hour.
    private static func shortLived(leafEnds: Bool, start: Int) throws -> MadeCertificates {
        var end = start + 1_800
        var parts = tm()
        gmtime_r(&end, &parts)
        let date = String(
            format: "%04d%02d%02d%02d%02d%02dZ", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
            parts.tm_hour, parts.tm_min, parts.tm_sec)
        let later = "20991231000000Z"
        return try MadeCertificates(
            """
            echo basicConstraints=critical,CA:TRUE > ext
            openssl ca -config cnf -batch -notext -selfsign -keyfile key.pem -in any.csr -subj /CN=Root \\
                -out root.pem -startdate 20200101000000Z -enddate "$1" -extfile ext
            echo subjectAltName=DNS:localhost > ext
            openssl ca -config cnf -batch -notext -cert root.pem -keyfile key.pem -in any.csr \\
                -subj /CN=localhost -out leaf.pem -startdate 20200101000000Z -enddate "$2" -extfile ext
            """, leafEnds ? later : date, leafEnds ? date : later)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `tolerated problems are known of a resumed connection too`(version: String) throws {
        let (server, port) = try OpenSSLServer.start(.expired, [version])
        defer { server.terminate() }
        let settings = TLSSettings.test { $0.tolerance = .expiredCertificates }
        for isResumed in [false, true, true] {
            let client = try BlockingTLSClient(port: port, settings: settings)
            try client.handshake()
            #expect(client.engine.isResumed == isResumed)
            #expect(client.engine.information.problems.map(\.kind) == [.expired])
            try client.exchangeLine()
        }
        // Other settings begin anew, and look for themselves.
        #expect(throws: TLSError.self) { try BlockingTLSClient(port: port).handshake() }
    }

    @Test(arguments: [true, false])
    func `a client that a handler has refused cannot come back by a session`(accepts: Bool) throws {
        let asked = Mutex(0)
        let listener = try TestListener()
        let client = try Self.returningClient(listener.port, showing: .client)
        defer { client.terminate() }
        let settings = try TLSServerTests.settings {
            $0.clientCertificates = .required
            $0.trustHandler = TLSTrustHandler { _ in }
        }
        for _ in ["TLSv1_2", "TLSv1_3"] {
            for _ in 0..<2 {
                let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
                server.engine.ask(forTrust: true, forIdentity: false)
                let result = Result {
                    try server.handshake { question in
                        guard case .trust(let trust) = question else { return }
                        asked.withLock { $0 += 1 }
                        if accepts { trust.accept() } else { trust.reject() }
                    }
                    try server.write([1])
                }
                #expect(((try? result.get()) != nil) == accepts)
                server.engine.shutdown()
            }
            #expect(try client.line(after: "REUSED ") == "False False")
        }
        #expect(asked.withLock { $0 } == 4)
    }

    @Test(arguments: [TLSSettings.ClientCertificates.required, .requested])
    func `ST-43 a client that has shown its certificate to a server shows it each time`(
        certificates: TLSSettings.ClientCertificates
    ) throws {
        let listener = try TestListener()
        let client = try Self.returningClient(listener.port, showing: .client)
        defer { client.terminate() }
        let settings = try TLSServerTests.settings { $0.clientCertificates = certificates }
        // A context of its own, which `shared` has not made.
        #expect(try !TLSContext(settings).settings.resumesSessions)
        for _ in ["TLSv1_2", "TLSv1_3"] {
            for _ in 0..<2 {
                let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
                try server.handshake()
                try server.write([1])
                #expect(!server.engine.isResumed)
                #expect(server.engine.peerSubject == "CN=a client")
                server.engine.shutdown()
            }
            #expect(try client.line(after: "REUSED ") == "False False")
        }
    }

    @Test func `ST-43 a server knows the tolerated problems of a client each time it comes`() throws {
        let listener = try TestListener()
        let client = try Self.returningClient(listener.port, showing: .selfSigned)
        defer { client.terminate() }
        let settings = try TLSServerTests.settings {
            $0.clientCertificates = .required
            $0.tolerance = .anyRoot
        }
        for _ in ["TLSv1_2", "TLSv1_3"] {
            for _ in 0..<2 {
                let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
                try server.handshake()
                try server.write([1])
                #expect(server.engine.information.problems.map(\.kind) == [.selfSigned])
                server.engine.shutdown()
            }
            #expect(try client.line(after: "REUSED ") == "False False")
        }
    }

    /// A client that connects twice with each version, shows a certificate, and offers the session of the first
    /// connection to the second one.
    private static func returningClient(
        _ port: UInt16, showing kind: TestCertificates.Kind
    ) throws -> TestServerProcess {
        let certificates = TestCertificates.shared
        return try TestServerProcess([
            "python3", "-c", returningClientLines, "\(port)", certificates.authorityPath,
            certificates.path(kind), certificates.keyPath(kind),
        ])
    }

    private static let returningClientLines = """
        import socket, ssl, sys
        for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]:
            context = ssl.create_default_context(cafile=sys.argv[2])
            context.load_cert_chain(sys.argv[3], sys.argv[4])
            context.minimum_version = context.maximum_version = version
            session, reused = None, []
            for _ in range(2):
                tls = context.wrap_socket(
                    socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost",
                    session=session)
                reused.append(tls.session_reused)
                try: tls.recv(1)
                except OSError: pass
                session = tls.session
                tls.close()
            print("REUSED", *reused, flush=True)
        """

    @Test func `a client makes a full handshake with a server that replaced another on its port`() throws {
        // The session is the one of another server with other keys.
        let port = try TestListener().port
        for _ in 0..<2 {
            let certificates = TestCertificates.shared
            let server = try TestServerProcess([
                "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificates.path(.good),
                "-key", certificates.keyPath, "-rev",
            ])
            defer { server.terminate() }
            _ = try server.line(after: "ACCEPT")
            let client = try BlockingTLSClient(port: port)
            try client.handshake()
            try client.exchangeLine()
            #expect(!client.engine.isResumed)
        }
    }

    @Test(arguments: [true, false])
    func `our server lets a client take its session up`(resumes: Bool) throws {
        let listener = try TestListener()
        let client = try TestServerProcess([
            "python3", "-c", Self.client, "\(listener.port)", TestCertificates.shared.authorityPath,
        ])
        defer { client.terminate() }
        let settings = try TLSServerTests.settings { $0.resumesSessions = resumes }
        for _ in ["TLSv1_2", "TLSv1_3"] {
            for _ in 0..<2 {
                let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
                try server.handshake()
                try server.write([1])
                #expect(try server.readToEnd().1 == [2])
                server.engine.shutdown()
            }
            #expect(try client.line(after: "REUSED ") == "False \(resumes ? "True" : "False")")
        }
    }

    private static let client = """
        import socket, ssl, sys
        for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]:
            context = ssl.create_default_context(cafile=sys.argv[2])
            context.minimum_version = context.maximum_version = version
            session, reused = None, []
            for _ in range(2):
                tls = context.wrap_socket(
                    socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost",
                    session=session)
                assert tls.recv(1) == bytes([1])
                session = tls.session
                reused.append(tls.session_reused)
                tls.sendall(bytes([2]))
                tls.unwrap()
            print("REUSED", *reused, flush=True)
        """

    @Test func `ST-5 the negotiated values can be read from a stream, also once it is closed`() throws {
        let (server, port) = try OpenSSLServer.start(.good, ["-alpn", "h2"])
        defer { server.terminate() }
        let findings = try onStreamThread { _ in
            let (input, output) = streamsToHost(port, host: "localhost")
            let settings = TLSSettings.test { $0.alpn = ["h2", "http/1.1"] }
            _ = input.setProperty(settings as AnyObject, forKey: .tlsSettingsKey)
            let before = input.property(forKey: .tlsInformationKey) == nil
            input.open()
            output.open()
            _ = output.writeAll([10])
            guard let found = output.property(forKey: .tlsInformationKey) as? TLSInformation else {
                return []
            }
            input.close()
            output.close()
            let closed = [input, output].map { $0.property(forKey: .tlsInformationKey) as? TLSInformation }
            return [
                "\(before)", found.version, found.applicationProtocol ?? "", "\(found.problems)",
                found.peerCertificates.first?.subject ?? "", "\(found.isResumed)",
                "\(found.cipherSuite.hasPrefix("TLS_"))", "\(closed.allSatisfy { $0 == found })",
            ]
        }
        #expect(findings == ["true", "TLSv1.3", "h2", "[]", "CN=localhost", "false", "true", "true"])
    }

    @Test func `SSLKEYLOGFILE gets the keys, and only its owner may read it`() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryPath()
            defer { unlink(path) }
            // Before the first use of TLS: it is looked at once.
            setenv("SSLKEYLOGFILE", path, 1)
            let (server, port) = try OpenSSLServer.start()
            let client = try BlockingTLSClient(port: port)
            try client.handshake()
            server.terminate()
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let labels = text.split(separator: "\n").map { $0.prefix { $0 != " " } }
            precondition(labels.contains("CLIENT_TRAFFIC_SECRET_0"), text)
            precondition(labels.contains("SERVER_HANDSHAKE_TRAFFIC_SECRET"), text)
            var status = stat()
            precondition(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        }
    }
}
