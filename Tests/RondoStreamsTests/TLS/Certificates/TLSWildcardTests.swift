import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Certificates with a star.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSWildcardTests {
    @Test func `ST-43 a star right below a registry's suffix stands for no host`() throws {
        let certificates = TestCertificates.shared
        let path = temporaryPath()
        defer { unlink(path) }
        let names = [
            "*.co.uk", "exact.co.uk", "*.example.co.uk", "*.github.io", "*.elsewhere.invalid", "*.s3.invalid",
        ]
        try TestServerProcess.run([
            "openssl", "req", "-x509", "-CA", certificates.authorityPath, "-CAkey", certificates.keyPath,
            "-key",
            certificates.keyPath, "-subj", "/CN=star", "-days", "30", "-out", path, "-addext",
            "subjectAltName=" + names.map { "DNS:\($0)" }.joined(separator: ","),
        ])
        let server = try TestServerProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", path, "-key", certificates.keyPath,
            "-rev",
        ])
        defer { server.terminate() }
        let port = try server.port(after: "ACCEPT ")
        for (host, isAccepted) in [
            ("any.co.uk", false), ("ANY.CO.UK", false), ("any.co.uk.", false), ("exact.co.uk", true),
            ("a.example.co.uk", true), ("me.github.io", true), ("a.elsewhere.invalid", true),
        ] {
            let settings = TLSSettings.test { $0.resumesSessions = false }
            let client = try BlockingTLSClient(port: port, settings: settings, host: host)
            if isAccepted {
                try client.handshake()
            } else {
                let error = try #require(throws: TLSError.self) { try client.handshake() }
                guard case .certificate(let problem) = error.reason else { throw error }
                #expect(problem.kind == .hostNameMismatch)
            }
        }
    }
}
