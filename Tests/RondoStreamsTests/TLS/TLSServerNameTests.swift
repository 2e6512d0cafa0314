import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// A server with an identity for each name that clients ask for.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSServerNameTests {
    private static func identity(_ kind: TestCertificates.Kind) throws -> TLSIdentity {
        let certificates = TestCertificates.shared
        return try TLSIdentity(
            chainFile: certificates.path(kind), privateKeyFile: certificates.keyPath(kind))
    }

    /// Returns the subject that `openssl s_client` sees when it asks for `name` (nil: for none), and the name that the
    /// server hears.
    private func meet(
        _ settings: TLSSettings, name: String?, _ options: [String] = []
    ) throws -> (subject: String, heard: String?) {
        let listener = try TestListener()
        let client = try TestServerProcess(
            ["openssl", "s_client", "-connect", "127.0.0.1:\(listener.port)", "-brief"]
                + (name.map { ["-servername", $0] } ?? ["-noservername"]) + options)
        defer { client.terminate() }
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
        try server.handshake()
        server.engine.shutdown()
        return (try client.line(after: "Peer certificate: "), server.engine.information.requestedName)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `ST-43 the name that a client asks for decides the server's identity`(version: String) throws {
        let settings = try TLSServerTests.settings {
            $0.identities = [
                "Elsewhere.invalid": try! Self.identity(.wrongHost),
                "*.clients.invalid": try! Self.identity(.client),
                "own.clients.invalid": try! Self.identity(.wrongHost),
            ]
        }
        for (name, subject) in [
            ("localhost", "localhost"), ("elsewhere.invalid", "elsewhere.invalid"),
            ("ELSEWHERE.invalid", "elsewhere.invalid"), ("www.elsewhere.invalid", "localhost"),
            ("a.clients.invalid", "a client"), ("own.clients.invalid", "elsewhere.invalid"),
            ("a.b.clients.invalid", "localhost"), ("clients.invalid", "localhost"),
        ] {
            let (shown, heard) = try meet(settings, name: name, [version])
            #expect(shown == "CN = \(subject)", "\(name)")
            #expect(heard == name)
        }
        let (shown, heard) = try meet(settings, name: nil, [version])
        #expect(shown == "CN = localhost" && heard == nil)
    }

    @Test func `ST-43 an identity with another kind of key replaces the default one`() throws {
        let path = temporaryPath()
        defer { for suffix in ["", ".key"] { unlink(path + suffix) } }
        try TestServerProcess.run([
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rsa.invalid",
            "-keyout", path + ".key", "-out", path, "-days", "2",
        ])
        let identity = try TLSIdentity(chainFile: path, privateKeyFile: path + ".key")
        let settings = try TLSServerTests.settings { $0.identities = ["rsa.invalid": identity] }
        for version in ["-tls1_2", "-tls1_3"] {
            #expect(try meet(settings, name: "rsa.invalid", [version]).subject == "CN = rsa.invalid")
            #expect(try meet(settings, name: "localhost", [version]).subject == "CN = localhost")
        }
    }

    @Test(arguments: ["", "*", "*.", "a*.invalid", "a.*.invalid", "with space", "bücher.example"])
    func `an identity for a text that is not a host name is refused`(name: String) throws {
        let error = try #require(throws: TLSError.self) {
            try TLSContext(
                TLSServerTests.settings { $0.identities = [name: try! Self.identity(.good)] })
        }
        guard case .settings = error.reason else { throw error }
    }

    @Test func `a key that is too weak is refused before a client asks`() throws {
        let error = try #require(throws: TLSError.self) {
            try TLSContext(
                TLSServerTests.settings { $0.identities = ["weak.invalid": try! Self.identity(.weakKey)] })
        }
        #expect(error.description.contains("weak.invalid"))
    }

    @Test func `a client's connection has no requested server name`() throws {
        let client = try PythonServer.client(.echo)
        try client.handshake()
        #expect(client.engine.information.requestedName == nil)
        client.engine.shutdown()
    }
}
