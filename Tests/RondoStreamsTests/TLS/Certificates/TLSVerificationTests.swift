import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Tests which certificates are accepted, against `openssl s_server`.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSVerificationTests {
    /// A certificate, the host that is looked for, and the settings: accepted, or refused for a problem.
    struct Row: Sendable, CustomTestStringConvertible {
        let kind: TestCertificates.Kind
        let problem: CertificateProblem.Kind?
        let host: String
        let settings: TLSSettings
        let remark: String

        init(
            _ kind: TestCertificates.Kind, _ problem: CertificateProblem.Kind?, host: String = "localhost",
            _ remark: String = "", _ change: (inout TLSSettings) -> Void = { _ in }
        ) {
            self.kind = kind
            self.problem = problem
            self.host = host
            self.remark = remark
            settings = .test(change)
        }

        var testDescription: String {
            let outcome = problem.map { "\($0)" } ?? "accepted"
            return "\(kind) for \(host)\(remark.isEmpty ? "" : ", \(remark)"): \(outcome)"
        }
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }

    static let rows: [Row] = {
        let files = TestCertificates.shared
        let (authority, stranger) = (files.authorityPath, files.strangerPath)
        return [
            // Names, in capitals or with the dot of a complete one, and addresses.
            Row(.good, nil, host: "localhost"), Row(.good, nil, host: "127.0.0.1"),
            Row(.good, nil, host: "LOCALHOST"), Row(.good, nil, host: "localhost."),
            Row(.wrongHost, .hostNameMismatch), Row(.wrongHost, .hostNameMismatch, host: "127.0.0.1"),
            Row(.wrongHost, nil, host: "192.0.2.1"), Row(.wrongHost, .hostNameMismatch, host: "192.0.2.2"),
            Row(.wrongHost, nil, "by another name") { $0.serverName = "elsewhere.invalid" },
            // A wildcard stands for one label.
            Row(.wrongHost, nil, host: "elsewhere.invalid"),
            Row(.wrongHost, nil, host: "www.elsewhere.invalid"),
            Row(.wrongHost, .hostNameMismatch, host: "a.b.elsewhere.invalid"),
            Row(.wrongHost, .hostNameMismatch, host: "xelsewhere.invalid"),
            Row(.wrongHost, .hostNameMismatch, host: "invalid"),
            // Without host name the name alone is not checked.
            Row(.wrongHost, nil, "any name") { $0.verification = .withoutHostName },
            Row(.wrongHost, nil, host: "127.0.0.1", "any name") { $0.verification = .withoutHostName },
            Row(.expired, .expired, "any name") { $0.verification = .withoutHostName },
            Row(.untrusted, .unknownIssuer, "any name") { $0.verification = .withoutHostName },
            // What is trusted: nothing, this machine's authorities, texts, several sources, the certificate itself.
            Row(.good, .unknownIssuer, "by no authority") { $0.certificateAuthorities = [] },
            Row(.good, .unknownIssuer, "by the machine") { $0.certificateAuthorities = [.system] },
            Row(.good, .unknownIssuer, "by a stranger") {
                $0.certificateAuthorities = [.pem(text(stranger))]
            },
            Row(.good, nil, "by one text of two") {
                $0.certificateAuthorities = [.pem(text(stranger) + text(authority))]
            },
            Row(.good, nil, "by one source of three") {
                $0.certificateAuthorities = [.system, .pem(text(stranger)), .file(authority)]
            },
            Row(.untrusted, nil, "by one source of three") {
                $0.certificateAuthorities = [.system, .pem(text(stranger)), .file(authority)]
            },
            Row(.selfSigned, nil, "by itself") {
                $0.certificateAuthorities = [.file(files.path(.selfSigned))]
            },
        ]
    }()

    @Test(arguments: rows)
    func `ST-43 the settings decide which server certificates are accepted`(row: Row) throws {
        guard let expected = row.problem else {
            let client = try BlockingTLSClient.connected(to: row.kind, row.settings, host: row.host)
            #expect(client.engine.peerName == row.settings.serverName ?? row.host)
            return
        }
        let error = try #require(throws: TLSError.self) {
            try BlockingTLSClient.connected(to: row.kind, row.settings, host: row.host)
        }
        guard case .certificate(let problem) = error.reason else { throw error }
        #expect(problem.kind == expected)
        #expect(error.host == row.host)
    }

    @Test func `ST-43 the properties of an accepted certificate can be read`() throws {
        let client = try BlockingTLSClient.connected(to: .good)
        #expect(client.engine.certificateProblem == nil)
        let certificate = try #require(client.engine.peerCertificates.first)
        #expect(certificate.subject == "CN=localhost")
        #expect(certificate.issuer == "CN=Rondo Test Authority")
        #expect(certificate.names == ["localhost", "127.0.0.1"])
        #expect(certificate.notBefore == Date(timeIntervalSince1970: 1_704_067_200))
        #expect(certificate.notAfter == Date(timeIntervalSince1970: 4_102_358_400))
        #expect(certificate.derRepresentation.count > 200)
    }

    @Test(arguments: TestCertificates.Kind.allCases)
    func `without verification everything is accepted and the problem can be asked for`(
        kind: TestCertificates.Kind
    ) throws {
        let client = try BlockingTLSClient.connected(to: kind, .test { $0.verification = .none })
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

    @Test func `authorities are found in a directory that OpenSSL has hashed`() throws {
        let directory = NSTemporaryDirectory() + "/rondo-authorities-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.copyItem(
            atPath: TestCertificates.shared.authorityPath, toPath: directory + "/authority.pem")
        try TestServerProcess.run(["openssl", "rehash", directory])
        _ = try BlockingTLSClient.connected(
            to: .good, .test { $0.certificateAuthorities = [.directory(directory)] })
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
