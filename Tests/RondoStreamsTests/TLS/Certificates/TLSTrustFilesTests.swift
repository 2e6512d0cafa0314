import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Files of authorities and revocation lists that change while the process runs.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSTrustFilesTests {
    private final class Folder {
        let path = temporaryPath()

        init() throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        /// As programs that care replace a file: by renaming.
        func put(_ source: String, at name: String) throws {
            let text = try String(contentsOfFile: source, encoding: .utf8)
            try text.write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
        }

        /// In place, with the same inode.
        func overwrite(_ source: String, at name: String) throws {
            let text = try String(contentsOfFile: source, encoding: .utf8)
            try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
        }
    }

    private static let start = LoopClock.systemNow

    /// A moment, in seconds from the start.
    private func moment(_ seconds: Double) -> LoopInstant { Self.start.advanced(bySeconds: seconds) }

    /// Whether the server is accepted, by a resumed session or without.
    private func connect(_ port: UInt16, _ settings: TLSSettings, at seconds: Double) throws -> String {
        let context = try TLSContext.shared(for: settings, now: moment(seconds))
        let client = try BlockingTLSClient(port: port, context: context)
        do {
            try client.handshake()
        } catch let error as TLSError {
            guard case .certificate(let problem) = error.reason else { throw error }
            return "\(problem.kind == .unknownIssuer ? "unknown issuer" : problem.words)"
        }
        try client.exchangeLine()
        client.engine.shutdown()
        return client.engine.isResumed ? "resumed" : "accepted"
    }

    @Test(arguments: [true, false], ["-tls1_2", "-tls1_3"])
    func `an authority that was taken out of its file is trusted no longer`(renames: Bool, version: String)
        throws
    {
        let (folder, files) = (try Folder(), TestCertificates.shared)
        let (server, port) = try OpenSSLServer.start(.good, [version])
        defer { server.terminate() }
        let replace = renames ? folder.put : folder.overwrite
        try folder.put(files.authorityPath, at: "roots.pem")
        let settings = TLSSettings.test { $0.certificateAuthorities = [.file(folder.path + "/roots.pem")] }
        #expect(try connect(port, settings, at: 0) == "accepted")
        #expect(try connect(port, settings, at: 2) == "resumed")
        try replace(files.strangerPath, "roots.pem")
        // It is looked at once a second.
        #expect(try connect(port, settings, at: 2.5) == "resumed")
        #expect(try connect(port, settings, at: 4) == "unknown issuer")
        try replace(files.authorityPath, "roots.pem")
        // Sessions of before the change are gone.
        #expect(try connect(port, settings, at: 6) == "accepted")
        #expect(try connect(port, settings, at: 8) == "resumed")
        unlink(folder.path + "/roots.pem")
        let error = #expect(throws: TLSError.self) { try connect(port, settings, at: 10) }
        #expect(error?.description.contains("roots.pem") == true)
    }

    @Test func `a list of revoked certificates that was replaced is read again`() throws {
        let (folder, files) = (try Folder(), TestCertificates.shared)
        let (server, port) = try OpenSSLServer.start(.good)
        defer { server.terminate() }
        try folder.put(files.revocationListPath, at: "list.pem")
        let settings = TLSSettings.test { $0.revocationLists = [.file(folder.path + "/list.pem")] }
        #expect(try connect(port, settings, at: 0) == "accepted")
        #expect(try connect(port, settings, at: 2) == "resumed")
        try folder.put(files.oldRevocationListPath, at: "list.pem")
        #expect(try connect(port, settings, at: 4) == "CRL has expired")
    }

    @Test func `a folder of authorities is looked at again`() throws {
        let (folder, files) = (try Folder(), TestCertificates.shared)
        let (server, port) = try OpenSSLServer.start(.good)
        defer { server.terminate() }
        try folder.put(files.authorityPath, at: "authority.pem")
        try TestServerProcess.run(["openssl", "rehash", folder.path])
        let settings = TLSSettings.test { $0.certificateAuthorities = [.directory(folder.path)] }
        #expect(try connect(port, settings, at: 0) == "accepted")
        unlink(folder.path + "/authority.pem")
        try TestServerProcess.run(["openssl", "rehash", folder.path])
        #expect(try connect(port, settings, at: 2) == "unknown issuer")
    }

    @Test func `the machine's authorities are looked at again`() async {
        await #expect(processExitsWith: .success) {
            let (folder, files) = (try Folder(), TestCertificates.shared)
            let (server, port) = try OpenSSLServer.start(.good)
            try folder.put(files.authorityPath, at: "roots.pem")
            setenv("SSL_CERT_FILE", folder.path + "/roots.pem", 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let tests = TLSTrustFilesTests()
            let first = try tests.connect(port, TLSSettings(), at: 0)
            let second = try tests.connect(port, TLSSettings(), at: 2)
            try folder.put(files.strangerPath, at: "roots.pem")
            let third = try tests.connect(port, TLSSettings(), at: 4)
            // Another file altogether.
            setenv("SSL_CERT_FILE", files.authorityPath, 1)
            let fourth = try tests.connect(port, TLSSettings(), at: 6)
            server.terminate()
            let found = [first, second, third, fourth]
            precondition(found == ["accepted", "resumed", "unknown issuer", "accepted"], "\(found)")
        }
    }

    @Test func `a server's authorities for clients are looked at again`() throws {
        let (folder, files) = (try Folder(), TestCertificates.shared)
        try folder.put(files.authorityPath, at: "roots.pem")
        let settings = try TLSServerTests.settings {
            $0.clientCertificates = .required
            $0.certificateAuthorities = [.file(folder.path + "/roots.pem")]
        }
        let context = try TLSContext.shared(for: settings, now: moment(0))
        #expect(try TLSContext.shared(for: settings, now: moment(2)) === context)
        try folder.put(files.strangerPath, at: "roots.pem")
        #expect(try TLSContext.shared(for: settings, now: moment(2.5)) === context)
        #expect(try TLSContext.shared(for: settings, now: moment(4)) !== context)
    }
}
