import RondoCore
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
            // Reading takes the tickets of TLS 1.3 in.
            try client.write(Array("ab\n".utf8))
            #expect(try client.read(exactly: 3) == Array("ba\n".utf8))
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
    func `other settings, another port or a question begin anew`(version: String) throws {
        let other = TLSSettings.test { $0.alpn = ["http/1.1"] }
        let off = TLSSettings.test { $0.resumesSessions = false }
        #expect(try resumptions([version], [.test, other, off, off]) == [false, false, false, false])
        #expect(try resumptions([version], [.test, .test], asking: true) == [false, false])
        #expect(try resumptions([version], [.test]) == [false])
    }

    @Test func `a server that was replaced is met anew`() throws {
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
            try client.write(Array("ab\n".utf8))
            #expect(try client.read(exactly: 3) == Array("ba\n".utf8))
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

    @Test func `what was agreed upon can be read from a stream`() throws {
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
            return [
                "\(before)", found.version, found.applicationProtocol ?? "", "\(found.problems)",
                found.peerCertificates.first?.subject ?? "", "\(found.isResumed)",
                "\(found.cipherSuite.hasPrefix("TLS_"))",
            ]
        }
        #expect(findings == ["true", "TLSv1.3", "h2", "[]", "CN=localhost", "false", "true"])
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
