import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Counted in a process of their own, because other tests open and close descriptors meanwhile.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct DescriptorTests {
    @Test func `TLS, streams and look-ups leave no descriptor behind`() async {
        await #expect(processExitsWith: .success) {
            // What is opened once a process: certificates, OpenSSL's files, the resolver.
            try Self.use()
            let before = Self.openDescriptors()
            for _ in 0..<5 { try Self.use() }
            let after = Self.openDescriptors()
            precondition(before == after, "open before: \(before), after: \(after)")
        }
    }

    static func use() throws {
        let (server, port) = try OpenSSLServer.start()
        let client = try BlockingTLSClient(port: port, settings: .test)
        try client.handshake()
        client.engine.shutdown()
        server.terminate()
        let (bad, badPort) = try OpenSSLServer.start(.expired)
        let refused = try BlockingTLSClient(port: badPort, settings: .test)
        #expect(throws: TLSError.self) { try refused.handshake() }
        bad.terminate()
        _ = try? Socket.connecting(to: .unix(path: "/nonexistent"))
        _ = try? Socket.connecting(to: .loopback(port: 1))
        try useStreams()
        let done = DispatchSemaphore(value: 0)
        Resolver.shared.resolve(host: "localhost", port: 80) { _ in done.signal() }
        done.wait()
    }

    static func useStreams() throws {
        let listener = try TestListener()
        // A run loop has descriptors of its own, which go with its thread.
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            let notes = StreamNotes()
            output.delegate = notes
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { notes.events.contains("space") }
            let peer = accept(descriptor, nil, nil)
            shutdown(peer, Int32(SHUT_WR))
            _ = input.allBytes()
            close(peer)
            // One is closed, the other dropped.
            input.close()
            let (refused, _) = streamsToHost(1)
            refused.open()
            _ = refused.allBytes()
            return []
        }
        precondition(findings == [], "\(findings)")
    }

    static func openDescriptors() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        // The descriptor that lists them is among them.
        return names.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }
        .map { $0.replacing(#/[0-9]+/#, with: "") }.sorted()
    }
}
