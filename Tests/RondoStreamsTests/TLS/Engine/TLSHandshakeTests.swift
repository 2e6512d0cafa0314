import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Versions, protocols and peers that are none.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSHandshakeTests {
    private func connect(_ options: [String], _ settings: TLSSettings = .test) throws -> TLSEngine {
        try BlockingTLSClient.connected(settings, options: options).engine
    }

    private func reason(_ body: () throws -> Void) throws -> TLSError.Reason {
        try #require(throws: TLSError.self, performing: body).reason
    }

    @Test func `the newest version is agreed upon`() throws {
        let engine = try connect([])
        #expect(engine.version == "TLSv1.3")
        #expect(engine.cipher?.hasPrefix("TLS_") == true)
        #expect(engine.applicationProtocol == nil)
    }

    @Test(arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
    func `a client speaks the only TLS version of its server`(option: String, version: String) throws {
        #expect(try connect([option]).version == version)
    }

    @Test func `ST-41 a server below the minimum is refused`() throws {
        let old = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]
        let error = try #require(throws: TLSError.self) { try connect(old) }
        guard case .protocolVersion = error.reason else { throw error }
        #expect(error.description.contains("have no version of TLS in common"))
    }

    @Test func `an old server is accepted by settings that ask for it`() throws {
        let old = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]
        #expect(try connect(old, .test { $0.minimumVersion = .tls11 }).version == "TLSv1.1")
    }

    @Test func `a server above the maximum refuses`() throws {
        let error = try #require(throws: TLSError.self) {
            try connect(["-tls1_3"], .test { $0.maximumVersion = .tls12 })
        }
        guard case .protocolVersion = error.reason else { throw error }
    }

    @Test func `a server without a common cipher fails the handshake by its alert`() throws {
        let error = try #require(throws: TLSError.self) {
            try connect(["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"])
        }
        #expect(error.reason == .alert(.handshakeFailure))
        #expect(error.description.contains("handshake failure (alert 40)"))
    }

    @Test func `a server that demands a certificate is understood`() throws {
        let authority = TestCertificates.shared.authorityPath
        for version in ["-tls1_2", "-tls1_3"] {
            let error = try #require(throws: TLSError.self) {
                try connect([version, "-Verify", "1", "-verify_return_error", "-CAfile", authority])
            }
            #expect(
                error.reason
                    == .certificateRequired(version == "-tls1_2" ? .handshakeFailure : .certificateRequired))
            #expect(error.description.contains("It asks for a certificate of this side's"))
        }
    }

    @Test func `ALPN gives the protocol that both know, and nil if the server chooses none`() throws {
        #expect(
            try connect(["-alpn", "http/1.1"], .test { $0.alpn = ["h2", "http/1.1"] }).applicationProtocol
                == "http/1.1")
        #expect(try connect([], .test { $0.alpn = ["h2"] }).applicationProtocol == nil)
    }

    @Test func `names are asked for and addresses are not`() throws {
        for (host, expected) in [("localhost", "SNI localhost"), ("127.0.0.1", "SNI None")] {
            let server = try TestServerProcess(["python3", "-c", Self.nameServer])
            defer { server.terminate() }
            let client = try BlockingTLSClient(
                port: try server.port(after: "PORT "), settings: .test, host: host)
            #expect(throws: TLSError.self) { try client.handshake() }
            #expect(try "SNI " + server.line(after: "SNI ") == expected)
        }
    }

    /// Prints the name that is asked for, and refuses.
    private static let nameServer = """
        import socket, ssl
        listener = socket.create_server(("127.0.0.1", 0))
        print("PORT", listener.getsockname()[1], flush=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        def named(socket, name, context):
            print("SNI", name, flush=True)
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        context.sni_callback = named
        try: context.wrap_socket(listener.accept()[0], server_side=True)
        except Exception: pass
        """

    @Test(arguments: [PythonServer.Mode.http, .garbage])
    func `a peer that does not speak TLS is reported as such`(mode: PythonServer.Mode) throws {
        let client = try PythonServer.client(mode)
        let error = try #require(throws: TLSError.self) { try client.handshake() }
        guard case .notTLS = error.reason else { throw error }
        #expect(error.description.contains("is not TLS"))
        // An error is a state that is never left.
        #expect(throws: error) { try client.handshake() }
        #expect(throws: error) { try client.read() }
        #expect(throws: error) { try client.write([1]) }
        #expect(client.engine.shutdown() == .done)
        #expect(!client.engine.checkQuiet())
    }

    @Test func `an alert in a server's first answer fails the handshake`() throws {
        let client = try PythonServer.client(.alert)
        #expect(try reason { try client.handshake() } == .alert(.handshakeFailure))
    }

    @Test func `a server that closes at once fails the handshake`() throws {
        let client = try PythonServer.client(.close)
        #expect(try reason { try client.handshake() } == .closedDuringHandshake(nil))
    }

    @Test func `a server that resets the connection`() throws {
        let listener = try TestListener()
        let client = try BlockingTLSClient(port: listener.address.port!, settings: .test)
        let peer = listener.accept()
        #expect(try client.engine.handshake() == .wantsRead)
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        close(peer)
        let error = try #require(throws: TLSError.self) { try client.handshake() }
        #expect(error.reason == .closedDuringHandshake(ECONNRESET))
        #expect(error.description.contains("ECONNRESET"))
    }

    @Test func `a detached engine touches no descriptor`() throws {
        let listener = try TestListener()
        let client = try BlockingTLSClient(port: listener.address.port!, settings: .test)
        client.engine.detach()
        #expect(try reason { try client.handshake() } == .system(EBADF))
    }

    @Test func `random answers never trap`() throws {
        try failByRandomBytes { descriptor in
            let engine = try TLSEngine(
                context: try .shared(for: .test), descriptor: descriptor, hostName: "localhost")
            #expect(try engine.handshake() == .wantsRead)
            return engine
        } record: { body in
            // A plausible record of a handshake, an alert or anything, with random contents.
            let count = body.count
            let kinds: [UInt8] = [20, 21, 22, 22, 22, 23, 0]
            let head = [kinds.randomElement()!, 3, 3, UInt8(count >> 8), UInt8(count & 255)]
            return head + (Bool.random() ? [2, 0, 0, UInt8(truncatingIfNeeded: count - 4)] : []) + body
        }
    }
}
