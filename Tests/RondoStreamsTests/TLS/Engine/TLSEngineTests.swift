import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Bytes through an engine, and its ends.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSEngineTests {
    private func connect(_ mode: PythonServer.Mode) throws -> (BlockingTLSClient, TestServerProcess) {
        let (server, port) = try PythonServer.start(mode)
        let client = try BlockingTLSClient(port: port, keeping: server)
        try client.handshake()
        return (client, server)
    }

    private func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    @Test(arguments: [1, 2, 16_383, 16_384, 16_385, 100_000])
    func `bytes go there and back over TLS in buffers of every size`(count: Int) throws {
        let bytes = pattern(count)
        for capacity in [1_000, 16_384, 65_536] {
            let (client, _) = try connect(.echo)
            try client.write(bytes)
            #expect(try client.read(exactly: count, capacity: capacity) == bytes)
            #expect(client.engine.shutdown() == .done)
            #expect(try client.readToEnd().0 == .end)
        }
    }

    @Test func `bytes that the transport passes one by one arrive whole, and so does the end`() throws {
        let (client, _) = try connect(.drip)
        let bytes = pattern(20_000)
        try client.write(bytes)
        #expect(try client.read(exactly: bytes.count) == bytes)
        client.engine.shutdown()
        let (result, rest) = try client.readToEnd()
        #expect(result == .end)
        #expect(rest == [])
    }

    @Test func `the unread rest of a TLS record is pending plaintext`() throws {
        let (client, server) = try connect(.told)
        #expect(!client.engine.hasPendingPlaintext)
        server.tell("speak")
        #expect(try client.read(2).1 == Array("to".utf8))
        #expect(client.engine.hasPendingPlaintext)
        #expect(try client.read(100).1 == Array("ld\n".utf8))
        #expect(!client.engine.hasPendingPlaintext)
        #expect(try client.read(0).0 == .bytes(0))
    }

    @Test func `half a record is not pending plaintext`() throws {
        let (relay, client) = try relayed()
        defer { relay.close() }
        try client.write(Array("hello".utf8))
        try relay.passToServer()
        // Five bytes of head and some of the body.
        try relay.pass(toClient: 9)
        try wait(client.socket.descriptor, for: POLLIN)
        var buffer = [UInt8](repeating: 0, count: 100)
        #expect(try buffer.withUnsafeMutableBytes { try client.engine.read(into: $0) } == .wantsRead)
        #expect(!client.engine.hasPendingPlaintext)
        try relay.pass(toClient: 1_000)
        #expect(try client.read().1 == Array("hello".utf8))
    }

    @Test func `a connection that ends in the middle of a record is truncated`() throws {
        let (relay, client) = try relayed()
        try client.write(Array("hello".utf8))
        try relay.passToServer()
        try relay.pass(toClient: 9)
        relay.close()
        #expect(try client.readToEnd() == (.truncated, []))
    }

    @Test func `a changed byte is noticed`() throws {
        let (relay, client) = try relayed()
        defer { relay.close() }
        try client.write(Array("hello".utf8))
        try relay.passToServer()
        try relay.pass(toClient: 1_000, changing: 12)
        let error = try #require(throws: TLSError.self) { try client.read() }
        guard case .protocolViolation = error.reason else { throw error }
        #expect(throws: error) { try client.read() }
        #expect(throws: error) { try client.write([1]) }
    }

    @Test func `the peer's close_notify is the end`() throws {
        let (client, _) = try connect(.orderly)
        let (result, bytes) = try client.readToEnd(capacity: 30_000)
        #expect(result == .end)
        #expect(bytes.count == 100_000)
        #expect(try client.read().0 == .end)
        // This side may still send.
        try client.write([1, 2, 3])
        #expect(client.engine.shutdown() == .done)
        #expect(client.engine.shutdown() == .done)
    }

    @Test func `an end without close_notify is truncation`() throws {
        let (client, _) = try connect(.truncate)
        let (result, bytes) = try client.readToEnd()
        #expect(result == .truncated)
        #expect(bytes.count == 100_000)
        #expect(try client.read().0 == .truncated)
    }

    @Test func `bytes that a full socket did not take are sent later, and none twice`() throws {
        let (client, server) = try connect(.sink)
        let piece = pattern(50_000)
        var sent: [UInt8] = []
        var result = TLSEngine.WriteResult.bytes(0)
        while true {
            result = try piece.withUnsafeBytes { try client.engine.write($0) }
            guard case .bytes(let count) = result else { break }
            sent += piece.prefix(count)
            if count < piece.count { #expect(client.engine.hasUnsentBytes) }
        }
        #expect(result == .wantsWrite)
        #expect(client.engine.hasUnsentBytes)
        #expect(client.engine.shutdown() == .wantsWrite)
        server.tell("go")
        // Other and fewer bytes than those refused: what was encrypted is not affected.
        try client.write([1, 2, 3])
        sent += [1, 2, 3]
        #expect(!client.engine.hasUnsentBytes)
        #expect(client.engine.shutdown() == .done)
        #expect(try server.line(after: "RECEIVED ") == "\(sent.count) \(sha256(sent))")
    }

    @Test func `an idle connection takes in tickets and notices the peer's words and end`() throws {
        let (client, server) = try connect(.told)
        // The tickets of TLS 1.3 arrive unasked.
        try wait(client.socket.descriptor, for: POLLIN)
        #expect(!client.socket.isQuiet())
        #expect(client.engine.checkQuiet())
        server.tell("speak")
        _ = try server.line(after: "SENT")
        try wait(client.socket.descriptor, for: POLLIN)
        #expect(!client.engine.checkQuiet())
        #expect(try client.read().1 == Array("told\n".utf8))
        #expect(client.engine.checkQuiet())
        server.tell("close")
        _ = try server.line(after: "CLOSED")
        try wait(client.socket.descriptor, for: POLLIN)
        #expect(!client.engine.checkQuiet())
    }

    @Test func `a failed write leaves what has arrived to be read`() throws {
        let (client, server) = try connect(.told)
        server.tell("speak")
        _ = try server.line(after: "SENT")
        server.tell("close")
        _ = try server.line(after: "CLOSED")
        // The first write is answered by a reset.
        var failure: TLSError?
        while failure == nil {
            do { try client.write([1]) } catch let error as TLSError { failure = error }
        }
        guard case .system = failure?.reason else { throw failure! }
        #expect(throws: failure!) { try client.write([1]) }
        #expect(try client.read().1 == Array("told\n".utf8))
    }

    private func sha256(_ bytes: [UInt8]) throws -> String {
        let path = NSTemporaryDirectory() + "/rondo-\(UUID().uuidString)"
        defer { unlink(path) }
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return try String(TestServerProcess.run(["sha256sum", path]).prefix(64))
    }

    /// A client whose server's bytes come only as far as the test lets them.
    private func relayed() throws -> (TestRelay, BlockingTLSClient) {
        let (server, port) = try PythonServer.start(.echo)
        let relay = try TestRelay(to: port, keeping: server)
        let client = try BlockingTLSClient(port: relay.port, settings: .test)
        try relay.accept()
        while try client.engine.handshake() != .done { try relay.turn(until: client.socket) }
        // The tickets, and nothing else: the server waits for the client now.
        try client.write([7])
        var received: [UInt8] = []
        while received.isEmpty {
            try relay.turn(until: client.socket)
            var buffer = [UInt8](repeating: 0, count: 100)
            let result = try buffer.withUnsafeMutableBytes { try client.engine.read(into: $0) }
            if case .bytes(let count) = result { received = Array(buffer.prefix(count)) }
        }
        #expect(received == [7])
        return (relay, client)
    }
}

/// Stands between a client and a server and passes on what it is told to, on the thread of the test.
final class TestRelay {
    private let listener: TestListener
    private let server: Socket
    private let process: TestServerProcess
    private var client: Int32 = -1

    var port: UInt16 { listener.address.port! }

    init(to port: UInt16, keeping process: TestServerProcess) throws {
        listener = try TestListener()
        server = try Socket.connecting(to: .loopback(port: port))
        try waitUntilWritable(server)
        self.process = process
    }

    deinit { close() }

    func accept() throws { client = listener.accept() }

    func close() {
        if client >= 0 { _ = Foundation.close(client) }
        client = -1
        server.close()
    }

    /// Waits for bytes of either side and passes them on; or until those passed on have come to `end`, the
    /// client's end, because even on loopback that takes a moment.
    func turn(until end: Socket) throws {
        var entries = [client, server.descriptor, end.descriptor].map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        guard poll(&entries, 3, patience) > 0 else { throw PeerIsSilent() }
        send(server.descriptor, receive(client, 65_536))
        send(client, receive(server.descriptor, 65_536))
    }

    /// Waits for what the client sends and passes it on.
    func passToServer() throws {
        try wait(client, for: POLLIN)
        send(server.descriptor, receive(client, 65_536))
    }

    /// Passes so many bytes of the answer on, of which one may be changed.
    func pass(toClient count: Int, changing index: Int? = nil) throws {
        try wait(server.descriptor, for: POLLIN)
        var bytes = receive(server.descriptor, count)
        if let index { bytes[index] ^= 1 }
        send(client, bytes)
    }

    private func receive(_ descriptor: Int32, _ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &bytes, count, Int32(MSG_DONTWAIT))
        return Array(bytes.prefix(max(0, received)))
    }

    private func send(_ descriptor: Int32, _ bytes: [UInt8]) {
        if !bytes.isEmpty { _ = Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    }
}
