import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Which certificates are accepted, against `openssl s_server`.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSVerificationTests {
    private func connect(
        _ kind: TestCertificates.Kind, _ settings: TLSSettings = .test, host: String = "localhost"
    ) throws -> BlockingTLSClient {
        let (server, port) = try OpenSSLServer.start(kind)
        defer { server.terminate() }
        let client = try BlockingTLSClient(port: port, settings: settings, host: host)
        try client.handshake()
        // The server is at work still.
        try client.write(Array("hello\n".utf8))
        #expect(try client.read(exactly: 6) == Array("olleh\n".utf8))
        return client
    }

    private func problem(
        _ kind: TestCertificates.Kind, _ settings: TLSSettings = .test, host: String = "localhost"
    ) throws -> (CertificateProblem, String) {
        let error = try #require(throws: TLSError.self) { try connect(kind, settings, host: host) }
        guard case .certificate(let problem) = error.reason else { throw error }
        #expect(error.host == host)
        return (problem, error.description)
    }

    @Test(arguments: ["localhost", "127.0.0.1", "LOCALHOST", "localhost."])
    func `ST-43 a good certificate is accepted`(host: String) throws {
        let client = try connect(.good, host: host)
        #expect(client.engine.certificateProblem == nil)
        let certificate = try #require(client.engine.peerCertificates.first)
        #expect(certificate.subject == "CN=localhost")
        #expect(certificate.issuer == "CN=Rondo Test Authority")
        #expect(certificate.names == ["localhost", "127.0.0.1"])
        #expect(certificate.notBefore == Date(timeIntervalSince1970: 1_704_067_200))
        #expect(certificate.notAfter == Date(timeIntervalSince1970: 4_102_358_400))
        #expect(certificate.derRepresentation.count > 200)
    }

    @Test func `ST-43 an expired certificate is refused`() throws {
        let (problem, sentence) = try problem(.expired)
        #expect(problem.kind == .expired)
        #expect(problem.code == 10)
        #expect(
            sentence == "the certificate of localhost (CN=localhost) expired on 2021-01-01. "
                + "Its owner has to renew it, unless this machine's clock is wrong")
    }

    @Test func `a certificate that is not valid yet is refused`() throws {
        let (problem, sentence) = try problem(.notYetValid)
        #expect(problem.kind == .notYetValid)
        #expect(sentence.contains("is not valid before 2090-01-01"))
    }

    @Test func `a self-signed certificate is refused unless it is trusted itself`() throws {
        let (problem, sentence) = try problem(.selfSigned)
        #expect(problem.kind == .selfSigned)
        #expect(sentence.contains("was issued by itself"))
        let path = TestCertificates.shared.path(.selfSigned)
        _ = try connect(.selfSigned, .test { $0.certificateAuthorities = [.file(path)] })
    }

    @Test func `ST-43 an unknown root is refused`() throws {
        let (problem, sentence) = try problem(.untrusted)
        #expect(problem.kind == .unknownIssuer)
        #expect(sentence.contains("“CN=Stranger Authority”"))
        // This machine's own authorities do not know the tests' either, and an empty list nobody.
        #expect(try self.problem(.good, TLSSettings()).0.kind == .unknownIssuer)
        #expect(try self.problem(.good, .test { $0.certificateAuthorities = [] }).0.kind == .unknownIssuer)
    }

    @Test func `a certificate for another host is refused and the sentence lists its names`() throws {
        let (problem, sentence) = try problem(.wrongHost)
        #expect(problem.kind == .hostNameMismatch)
        #expect(problem.certificate?.names == ["elsewhere.invalid", "*.elsewhere.invalid", "192.0.2.1"])
        #expect(
            sentence.hasPrefix(
                "the certificate is not for localhost, but for "
                    + "elsewhere.invalid, *.elsewhere.invalid, 192.0.2.1."))
        #expect(try self.problem(.wrongHost, host: "127.0.0.1").0.kind == .hostNameMismatch)
    }

    @Test func `a name in the subject alone does not count`() throws {
        let (problem, sentence) = try problem(.subjectOnly)
        #expect(problem.kind == .hostNameMismatch)
        #expect(sentence.contains("but for no host at all"))
    }

    @Test(arguments: [
        ("elsewhere.invalid", true), ("www.elsewhere.invalid", true), ("192.0.2.1", true),
        ("a.b.elsewhere.invalid", false), ("xelsewhere.invalid", false), ("192.0.2.2", false),
        ("invalid", false),
    ])
    func `wildcards stand for one label`(host: String, fits: Bool) throws {
        if fits {
            _ = try connect(.wrongHost, host: host)
        } else {
            #expect(try problem(.wrongHost, host: host).0.kind == .hostNameMismatch)
        }
    }

    @Test func `ST-43 the server name of the settings replaces the host`() throws {
        let client = try connect(.wrongHost, .test { $0.serverName = "elsewhere.invalid" })
        #expect(client.engine.peerName == "elsewhere.invalid")
    }

    @Test func `without host name the name alone is not checked`() throws {
        let settings = TLSSettings.test { $0.verification = .withoutHostName }
        _ = try connect(.wrongHost, settings)
        _ = try connect(.wrongHost, settings, host: "127.0.0.1")
        #expect(try problem(.expired, settings).0.kind == .expired)
        #expect(try problem(.untrusted, settings).0.kind == .unknownIssuer)
    }

    @Test(arguments: TestCertificates.Kind.allCases)
    func `without verification everything is accepted and the problem can be asked for`(
        kind: TestCertificates.Kind
    ) throws {
        let client = try connect(kind, .test { $0.verification = .none })
        let expected: CertificateProblem.Kind? =
            switch kind {
            case .good, .withBetween, .revoked, .serverOnly, .otherKey: nil
            case .expired: .expired
            case .notYetValid: .notYetValid
            case .selfSigned: .selfSigned
            case .untrusted, .withoutBetween, .byExpired: .unknownIssuer
            case .byNobody, .clientOnly: .wrongUsage
            case .client: .wrongUsage
            case .weakKey: .weak
            case .wrongHost, .subjectOnly: .hostNameMismatch
            }
        #expect(client.engine.certificateProblem?.kind == expected)
    }

    @Test func `authorities from a text and from several sources`() throws {
        let certificates = TestCertificates.shared
        let texts = try [certificates.strangerPath, certificates.authorityPath].map {
            try String(contentsOfFile: $0, encoding: .utf8)
        }
        _ = try connect(.good, .test { $0.certificateAuthorities = [.pem(texts.joined())] })
        let both = TLSSettings.test {
            $0.certificateAuthorities = [.system, .pem(texts[0]), .file(certificates.authorityPath)]
        }
        _ = try connect(.good, both)
        _ = try connect(.untrusted, both)
        #expect(
            try problem(.good, .test { $0.certificateAuthorities = [.pem(texts[0])] }).0.kind
                == .unknownIssuer)
    }

    @Test func `authorities from a directory`() throws {
        let directory = NSTemporaryDirectory() + "/rondo-authorities-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.copyItem(
            atPath: TestCertificates.shared.authorityPath, toPath: directory + "/authority.pem")
        try TestServerProcess.run(["openssl", "rehash", directory])
        _ = try connect(.good, .test { $0.certificateAuthorities = [.directory(directory)] })
    }

    @Test(arguments: [
        "", ".", ".localhost", "local\0host", "bücher.example", String(repeating: "x", count: 300),
    ])
    func `a host name that could switch the check off is refused`(host: String) throws {
        let listener = try TestListener()
        let error = try #require(throws: TLSError.self) {
            try BlockingTLSClient(port: listener.address.port!, settings: .test, host: host)
        }
        guard case .settings = error.reason else { throw error }
    }
}
