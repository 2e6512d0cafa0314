import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Peers that break TLS's rules, or its sense.
@Suite(.timeLimit(.minutes(5))) struct TLSHostilePeerTests {
    /// Connects our client to a server of Python's that misbehaves once the handshake is done.
    private func client(_ behaviour: String) throws -> (BlockingTLSClient, TestServerProcess) {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess([
            "python3", "-c", Self.server, behaviour, certificates.path(.good), certificates.keyPath,
        ])
        let client = try BlockingTLSClient(port: try server.port(after: "PORT "), keeping: server)
        return (client, server)
    }

    /// Raw records in the middle of a connection.
    private static let server = """
        import os, socket, ssl, struct, sys
        behaviour, certificate, key = sys.argv[1:]
        listener = socket.create_server(("127.0.0.1", 0))
        print("PORT", listener.getsockname()[1], flush=True)
        conn, _ = listener.accept()
        def reset(peer):
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        if behaviour == "resetInHandshake":
            conn.recv(1)
            reset(conn)
            sys.exit()
        if behaviour == "oversizedFirst":
            conn.recv(65536)
            conn.sendall(bytes([22, 3, 3, 0xff, 0xff]) + bytes(65535))
            conn.recv(65536)
            sys.exit()
        if behaviour == "endlessHandshake":
            # A handshake message that says it has 16 MB, and never ends.
            conn.recv(65536)
            try:
                conn.sendall(bytes([22, 3, 3, 0x40, 0]) + bytes([2, 0xff, 0xff, 0xff]) + bytes(16380))
                while True: conn.sendall(bytes([22, 3, 3, 0x40, 0]) + bytes(16384))
            except OSError: sys.exit()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        tls = context.wrap_socket(conn, server_side=True)
        tls.sendall(b"hello")
        raw = socket.socket(fileno=os.dup(tls.fileno()))
        try:
            if behaviour == "oversized": raw.sendall(bytes([23, 3, 3, 0xff, 0xff]) + bytes(65535))
            if behaviour == "plain": raw.sendall(b"HTTP/1.1 200 OK" + bytes([13, 10]))
            if behaviour == "emptyRecords":
                while True: raw.sendall(bytes([23, 3, 3, 0, 0]) * 1000)
            if behaviour == "reset":
                tls.recv(1)
                os.close(tls.detach())
                reset(raw)
                sys.exit()
            tls.recv(65536)
        except OSError: pass
        """

    @Test(arguments: ["oversized", "plain", "emptyRecords"])
    func `a broken record ends the connection`(behaviour: String) throws {
        let (client, server) = try client(behaviour)
        defer { server.terminate() }
        try client.handshake()
        #expect(try client.read(exactly: 5) == Array("hello".utf8))
        let error = try #require(throws: TLSError.self) { try client.read() }
        switch error.reason {
        case .protocolViolation, .notTLS, .protocolVersion: break
        default: throw error
        }
    }

    @Test(arguments: ["oversizedFirst", "endlessHandshake"])
    func `a handshake that is too large ends the connection`(behaviour: String) throws {
        let (client, server) = try client(behaviour)
        defer { server.terminate() }
        let error = try #require(throws: TLSError.self) { try client.handshake() }
        switch error.reason {
        case .protocolViolation, .notTLS: break
        default: throw error
        }
    }

    @Test func `a reset in the middle of the handshake fails it with its errno`() throws {
        let (client, server) = try client("resetInHandshake")
        defer { server.terminate() }
        let error = try #require(throws: TLSError.self) { try client.handshake() }
        #expect(error.reason == .closedDuringHandshake(ECONNRESET))
    }

    @Test func `a reset in the middle of the connection fails the read with its errno`() throws {
        let (client, server) = try client("reset")
        defer { server.terminate() }
        try client.handshake()
        #expect(try client.read(exactly: 5) == Array("hello".utf8))
        try client.write([1])
        let error = try #require(throws: TLSError.self) { try client.read() }
        #expect(error.reason == .system(ECONNRESET))
    }

    @Test func `a server that wants to renegotiate is refused`() throws {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.path(.good), "-key",
            certificates.keyPath, "-tls1_2", "-legacy_renegotiation",
        ])
        defer { server.terminate() }
        let client = try BlockingTLSClient(port: try server.port(after: "ACCEPT "))
        try client.handshake()
        // A command of s_server's: renegotiate.
        server.tell("r")
        // The client answers by no_renegotiation, which s_server takes for the end. A client that went along
        // would hear nothing now.
        guard case .failure(let error) = client.readOnce() else {
            throw NeverCame(description: "waited in vain for the end")
        }
        #expect(error.reason == .alert(.handshakeFailure))
    }

    @Test func `a client that wants to renegotiate is refused`() throws {
        let listener = try TestListener()
        let client = try TestServerProcess([
            "openssl", "s_client", "-connect", "127.0.0.1:\(listener.port)", "-tls1_2", "-CAfile",
            TestCertificates.shared.authorityPath,
        ])
        defer { client.terminate() }
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: TLSServerTests.settings())
        try server.handshake()
        client.tell("hello")
        #expect(try server.read().1 == Array("hello\n".utf8))
        // A command of s_client's. It ends when it gets no_renegotiation.
        client.tell("R")
        switch server.readOnce() {
        case .success((.bytes, let bytes)): throw NeverCame(description: "renegotiated: \(bytes)")
        case .success: break
        case .failure(let error):
            switch error.reason {
            case .alert, .protocolViolation, .system: break
            default: throw error
            }
        }
    }

    /// A client that says nothing, half of a hello, or nonsense to our server.
    @Test(arguments: ["", "16030100", "GET / HTTP/1.1\r\n\r\n"])
    func `a peer that is no client of TLS fails a server's handshake`(words: String) throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
        let server = try BlockingTLSClient(accepted: ends[0], settings: TLSServerTests.settings())
        #expect(try server.engine.handshake() == .wantsRead)
        _ = words.withCString { send(ends[1], $0, strlen($0), 0) }
        close(ends[1])
        let error = try #require(throws: TLSError.self) { try server.handshake() }
        switch error.reason {
        case .closedDuringHandshake, .notTLS, .protocolViolation, .protocolVersion: break
        default: throw error
        }
        #expect(error.description.contains("the client"))
    }

    @Test func `random clients never trap a server`() throws {
        try failByRandomBytes { descriptor in
            try TLSEngine(
                context: try .shared(for: TLSServerTests.settings()), descriptor: descriptor,
                hostName: "the client")
        } record: { body in
            let hello: [UInt8] =
                Bool.random() ? [1, 0, 0, UInt8(truncatingIfNeeded: body.count - 4), 3, 3] : []
            let all = hello + body
            let head: [UInt8] = [
                22, 3, UInt8.random(in: 0...4), UInt8(all.count >> 8), UInt8(all.count & 255),
            ]
            return head + all
        }
    }
}

/// Has engines take a record and then the end of the connection in their handshakes: each fails, and none traps.
///
/// - Parameters:
///   - makeEngine: Makes an engine over a descriptor.
///   - record: Makes the record, with random bytes in it.
func failByRandomBytes(
    _ makeEngine: (Int32) throws -> TLSEngine, record: (_ random: [UInt8]) -> [UInt8]
) throws {
    for _ in 0..<300 {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
        let socket = try Socket(adopting: ends[0])
        defer { close(ends[1]) }
        let engine = try makeEngine(socket.descriptor)
        let bytes = record((0..<Int.random(in: 1...300)).map { _ in UInt8.random(in: 0...255) })
        #expect(send(ends[1], bytes, bytes.count, 0) == bytes.count)
        shutdown(ends[1], Int32(SHUT_WR))
        #expect(throws: TLSError.self) {
            while try engine.handshake() != .done {}
        }
    }
}

extension BlockingTLSClient {
    /// One read, and how it ends.
    func readOnce() -> Result<(TLSEngine.ReadResult, [UInt8]), TLSError> {
        do {
            return .success(try read())
        } catch let error as TLSError {
            return .failure(error)
        } catch {
            return .failure(TLSError(.settings("\(error)")))
        }
    }
}
