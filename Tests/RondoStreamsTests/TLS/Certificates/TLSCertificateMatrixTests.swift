import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Every way in which a certificate can be wrong, and what is said about it, against `openssl s_server`.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSCertificateMatrixTests {
    private func problem(
        _ kind: TestCertificates.Kind, _ settings: TLSSettings, host: String = "localhost"
    ) throws -> (CertificateProblem, String) {
        let error = try #require(throws: TLSError.self) {
            try BlockingTLSClient.connected(to: kind, settings, host: host)
        }
        guard case .certificate(let problem) = error.reason else { throw error }
        return (problem, error.description)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let kind: TestCertificates.Kind
        let problem: CertificateProblem.Kind
        /// The subject of the certificate that has the problem.
        let subject: String
        let depth: Int
        let words: String
        var settings = TLSSettings.test

        var testDescription: String { "\(kind): \(words)" }
    }

    static let rows: [Row] = [
        Row(
            kind: .expired, problem: .expired, subject: "CN=localhost", depth: 0,
            words: "the certificate of localhost (CN=localhost) expired on 2021-01-01. "
                + "Its owner has to renew it, unless this machine's clock is wrong"),
        Row(
            kind: .notYetValid, problem: .notYetValid, subject: "CN=localhost", depth: 0,
            words: "the certificate of localhost (CN=localhost) is not valid before 2090-01-01"),
        Row(
            kind: .wrongHost, problem: .hostNameMismatch, subject: "CN=elsewhere.invalid", depth: 0,
            words: "the certificate is not for localhost, but for "
                + "elsewhere.invalid, *.elsewhere.invalid, 192.0.2.1."),
        Row(
            kind: .selfSigned, problem: .selfSigned, subject: "CN=localhost", depth: 0,
            words: "was issued by itself"),
        Row(
            kind: .untrusted, problem: .unknownIssuer, subject: "CN=localhost", depth: 0,
            words: "issued by “CN=Stranger Authority”, which this side does not know"),
        Row(
            kind: .withoutBetween, problem: .unknownIssuer, subject: "CN=localhost", depth: 0,
            words: "the server leaves out certificates between"),
        Row(
            kind: .byNobody, problem: .wrongUsage, subject: "CN=localhost", depth: 1,
            words: "the authority's certificate “CN=localhost” through which that of localhost was issued"),
        Row(
            kind: .byExpired, problem: .expired, subject: "CN=Expired Authority", depth: 1,
            words: "the authority's certificate “CN=Expired Authority” through which that of localhost was "
                + "issued expired on 2021-01-01",
            settings: .test {
                $0.certificateAuthorities = [.file(TestCertificates.shared.expiredAuthorityPath)]
            }),
        Row(
            kind: .revoked, problem: .revoked, subject: "CN=localhost", depth: 0,
            words: "was revoked by its issuer “CN=Rondo Test Authority”",
            settings: .test { $0.revocationLists = [.file(TestCertificates.shared.revocationListPath)] }),
        Row(
            kind: .weakKey, problem: .weak, subject: "CN=localhost", depth: 0,
            words: "was refused because it can be forged: EE certificate key too weak"),
        Row(
            kind: .clientOnly, problem: .wrongUsage, subject: "CN=localhost", depth: 0,
            words: "was issued for another purpose"),
        Row(
            kind: .subjectOnly, problem: .hostNameMismatch, subject: "CN=localhost", depth: 0,
            words: "but for no host at all"),
    ]

    @Test(arguments: rows)
    func `ST-44 an error says which check failed and for which certificate`(row: Row) throws {
        let (problem, sentence) = try problem(row.kind, row.settings)
        #expect(problem.kind == row.problem)
        #expect(problem.certificate?.subject == row.subject)
        #expect(problem.depth == row.depth)
        // OpenSSL's own number for it.
        if row.problem == .expired { #expect(problem.code == 10) }
        #expect(sentence.contains(row.words), "\(sentence)")
    }

    @Test func `ST-43 an authority that has expired is overlooked by the setting for authorities alone`()
        throws
    {
        func settings(_ tolerance: TLSSettings.Tolerance) -> TLSSettings {
            .test {
                $0.certificateAuthorities = [.file(TestCertificates.shared.expiredAuthorityPath)]
                $0.tolerance = tolerance
            }
        }
        try BlockingTLSClient.connected(to: .byExpired, settings(.expiredRoots))
        #expect(try problem(.byExpired, settings(.expiredCertificates)).0.kind == .expired)
        #expect(try problem(.expired, .test { $0.tolerance = .expiredRoots }).0.kind == .expired)
    }

    @Test func `a whole chain is accepted, and so is one that ends in a trusted authority between`() throws {
        try BlockingTLSClient.connected(to: .withBetween, .test)
        let between = TestCertificates.shared.betweenPath
        try BlockingTLSClient.connected(
            to: .withoutBetween, .test { $0.certificateAuthorities = [.file(between)] })
        let text = try String(contentsOfFile: between, encoding: .utf8)
        let certificates = try #require(TLSCertificate.certificates(inPEM: text))
        try BlockingTLSClient.connected(
            to: .withoutBetween, .test { $0.certificateAuthorities = [.certificates(certificates)] })
    }

    @Test func `an unknown root that the server shows is named`() throws {
        let certificates = TestCertificates.shared
        let (server, port) = try OpenSSLServer.start(
            .untrusted, ["-cert_chain", certificates.strangerPath])
        defer { server.terminate() }
        let client = try BlockingTLSClient(port: port, settings: .test)
        let error = try #require(throws: TLSError.self) { try client.handshake() }
        guard case .certificate(let problem) = error.reason else { throw error }
        #expect(problem.kind == .unknownIssuer)
        #expect(error.description.contains("issued under “CN=Stranger Authority”"))
    }

    // MARK: - Revocation

    @Test func `a revocation list refuses what is on it, and says nothing of other issuers`() throws {
        let certificates = TestCertificates.shared
        let list = try Data(contentsOf: URL(fileURLWithPath: certificates.revocationListPath))
        let der = temporaryPath()
        defer { unlink(der) }
        try TestServerProcess.run([
            "openssl", "crl", "-in", certificates.revocationListPath, "-outform", "DER", "-out", der,
        ])
        let encoded = try Data(contentsOf: URL(fileURLWithPath: der))
        for lists in [[TLSSettings.RevocationList.data(list)], [.data(encoded)], [.file(der)]] {
            let settings = TLSSettings.test { $0.revocationLists = lists }
            try BlockingTLSClient.connected(to: .good, settings)
            #expect(try problem(.revoked, settings).0.kind == .revoked)
        }
        // Without a list revocation is not known, which is no problem unless a list is required.
        try BlockingTLSClient.connected(to: .revoked, .test)
        let required = TLSSettings.test { $0.requiresRevocationLists = true }
        #expect(try problem(.good, required).0.kind == .revocationUnknown)
        var both = required
        both.revocationLists = [.data(list)]
        try BlockingTLSClient.connected(to: .good, both)
        // The list of one issuer says nothing about another.
        let between = TLSSettings.test { $0.revocationLists = [.data(list)] }
        try BlockingTLSClient.connected(to: .withBetween, between)
        #expect(try problem(.withBetween, both).0.kind == .revocationUnknown)
    }

    @Test func `a revocation list that is too old leaves the revocation unknown`() throws {
        let old = TestCertificates.shared.oldRevocationListPath
        let (problem, sentence) = try problem(.good, .test { $0.revocationLists = [.file(old)] })
        #expect(problem.kind == .revocationUnknown)
        #expect(sentence.contains("cannot be told: CRL has expired"))
    }

    @Test func `data that are not a revocation list are refused`() throws {
        let broken = Data("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n".utf8)
        for list in [
            TLSSettings.RevocationList.data(Data()), .data(Data([48, 1, 2])), .data(broken),
            .file("/nonexistent"), .file(TestCertificates.shared.authorityPath),
        ] {
            let error = try #require(throws: TLSError.self) {
                try TLSContext(.test { $0.revocationLists = [list] })
            }
            guard case .settings = error.reason else { throw error }
        }
    }

    // MARK: - Pins

    private func pin(_ path: String) throws -> Data {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return try #require(TLSCertificate.certificates(inPEM: text)?.first).publicKeyHash
    }

    @Test func `a pinned key has to be in the chain`() throws {
        let certificates = TestCertificates.shared
        let shared = try pin(certificates.path(.good))
        let other = try pin(certificates.path(.otherKey))
        // The authority's key is the shared one.
        try BlockingTLSClient.connected(to: .otherKey, .test { $0.pinnedKeys = [shared] })
        try BlockingTLSClient.connected(
            to: .otherKey, .test { $0.pinnedKeys = [Data(repeating: 1, count: 32), other] })
        let (problem, sentence) = try problem(.good, .test { $0.pinnedKeys = [other] })
        #expect(problem.kind == .keyNotPinned)
        #expect(sentence.contains("TLSSettings.pinnedKeys"))
        // A pin is no trust.
        #expect(try self.problem(.selfSigned, .test { $0.pinnedKeys = [shared] }).0.kind == .selfSigned)
    }

    @Test func `a pin alone, where no chain is checked, is the peer's own`() throws {
        let certificates = TestCertificates.shared
        let shared = try pin(certificates.path(.good))
        let other = try pin(certificates.path(.otherKey))
        func settings(_ hash: Data) -> TLSSettings {
            .test {
                $0.verification = .none
                $0.pinnedKeys = [hash]
            }
        }
        try BlockingTLSClient.connected(to: .selfSigned, settings(shared))
        try BlockingTLSClient.connected(to: .otherKey, settings(other))
        #expect(try problem(.otherKey, settings(shared)).0.kind == .keyNotPinned)
        #expect(try problem(.selfSigned, settings(other)).0.kind == .keyNotPinned)
    }

    @Test func `a pin of another length is refused`() throws {
        let error = try #require(throws: TLSError.self) {
            try TLSContext(.test { $0.pinnedKeys = [Data([1])] })
        }
        #expect(error.description.contains("32 bytes, not 1"))
    }
}
