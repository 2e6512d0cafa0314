import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct TLSContextTests {
    private func reason(_ change: (inout TLSSettings) -> Void) throws -> String {
        let error = try #require(throws: TLSError.self) { try TLSContext(.test(change)) }
        guard case .settings(let words, _) = error.reason else { throw error }
        return words
    }

    @Test func `equal settings share a context`() throws {
        let context = try TLSContext.shared(for: .test)
        #expect(try TLSContext.shared(for: .test) === context)
        #expect(try TLSContext.shared(for: .test { $0.alpn = ["h2"] }) !== context)
        #expect(try TLSContext.shared(for: .test { $0.serverName = "x" }) !== context)
    }

    @Test func `contexts that are not used any more are dropped`() throws {
        weak let first = try TLSContext.shared(for: .test { $0.alpn = ["first"] })
        for number in 0...TLSContext.sharedLimit {
            _ = try TLSContext.shared(for: .test { $0.alpn = ["\(number)"] })
        }
        #expect(first == nil)
    }

    @Test func `settings that cannot be used say which`() throws {
        #expect(
            try reason {
                $0.minimumVersion = .tls13; $0.maximumVersion = .tls12
            }.contains("minimumVersion"))
        #expect(try reason { $0.alpn = [""] }.contains("alpn"))
        #expect(try reason { $0.alpn = [String(repeating: "x", count: 256)] }.contains("256"))
        #expect(try reason { $0.certificateAuthorities = [.file("/nonexistent")] }.contains("/nonexistent"))
        let directory = try reason { $0.certificateAuthorities = [.directory("/nonexistent")] }
        #expect(directory.contains("certificateAuthorities (.directory “/nonexistent”) cannot be read"))
        #expect(directory.contains("ENOENT"))
        let list = try reason { $0.revocationLists = [.file("/nonexistent")] }
        #expect(list.contains("revocationLists (“/nonexistent”) cannot be read"))
    }

    @Test(arguments: [
        "", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n",
    ])
    func `a text without certificates is refused`(text: String) throws {
        #expect(try reason { $0.certificateAuthorities = [.pem(text)] }.contains("no certificate"))
    }

    @Test func `a text with one broken certificate is refused`() throws {
        let good = try String(contentsOfFile: TestCertificates.shared.authorityPath, encoding: .utf8)
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        #expect(try reason { $0.certificateAuthorities = [.pem(good + broken)] }.contains("no certificate"))
        // What stands around the certificates does not matter, nor does one that comes twice.
        _ = try TLSContext(.test { $0.certificateAuthorities = [.pem("words\n" + good + "words\n" + good)] })
    }

    @Test func `every TLS error names the host or the server, and every alert has words`() {
        let reasons: [TLSError.Reason] = [
            .protocolVersion("unsupported protocol"), .alert(.handshakeFailure), .closedDuringHandshake(nil),
            .closedDuringHandshake(ECONNRESET), .notTLS("wrong version number"), .system(EPIPE),
            .protocolViolation("bad record"), .certificateRequired(.certificateRequired),
        ]
        for reason in reasons {
            #expect(TLSError(reason, host: "example.com").description.contains("example.com"))
            #expect(TLSError(reason).description.contains("server"))
        }
        for number in 0...255 { #expect(!TLSError.Alert(number: UInt8(number)).description.isEmpty) }
        #expect(TLSError.Alert.certificateRequired.description == "certificate required (alert 116)")
    }
}
