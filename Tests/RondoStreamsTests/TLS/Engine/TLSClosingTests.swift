import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Tests how a connection over TLS is closed while its peer is still speaking.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSClosingTests {
    /// Opens streams to such a server, writes until no more is taken, and closes them.
    private func writeAndClose(_ port: UInt16, _ piece: [UInt8], by proxy: StreamProxy? = nil) throws -> Int {
        let findings = try onStreamThread { _ in
            let (input, output) = streamsToHost(port, host: "localhost")
            #expect(input.setProperty(proxy as AnyObject?, forKey: .proxyKey))
            #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            input.open()
            output.open()
            var total = 0
            // The first write waits for the handshake. One that is not taken in full has filled the socket.
            repeat {
                let count = output.write(piece, maxLength: piece.count)
                guard count > 0 else { break }
                total += count
            } while output.hasSpaceAvailable
            input.close()
            output.close()
            return ["\(total)"]
        }
        return try #require(findings.first.flatMap { Int($0) })
    }

    @Test func `ST-5 the peer reads the last bytes and close_notify though it speaks after our close`() throws
    {
        try expectToBeHeard(by: nil)
    }

    @Test func `ST-5 a peer behind a proxy over TLS reads the last bytes and close_notify, too`() throws {
        let squid = try ProxyServer.squid(isSecured: true)
        defer { squid.terminate() }
        var proxy = StreamProxy(.httpConnect, host: "localhost", port: Int(squid.port))
        proxy.tls = .test
        try expectToBeHeard(by: proxy)
    }

    private func expectToBeHeard(by proxy: StreamProxy?) throws {
        let path = temporaryPath()
        defer { unlink(path) }
        let (server, port) = try PythonServer.start(.late, path)
        defer { server.terminate() }
        let piece = pattern(65_536)
        let total = try writeAndClose(port, piece, by: proxy)
        // Its answer meets a connection that was closed here, with most of the bytes not yet sent.
        server.tell("go")
        #expect(try server.line(after: "END ") == "close_notify")
        let received = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        #expect(received.count == total && total > piece.count)
        let isWhole = stride(from: 0, to: received.count, by: piece.count).allSatisfy {
            received[$0..<min($0 + piece.count, received.count)].elementsEqual(
                piece.prefix(received.count - $0))
        }
        #expect(isWhole)
    }

    @Test func `ST-5 the end of TLS inside TLS is said in both, the inner one first`() throws {
        let outer = try TLSMemoryTests.Pair(client: .test, server: TLSServerTests.settings())
        try outer.handshake()
        let inner = try TLSMemoryTests.Pair(client: .test, server: TLSServerTests.settings(), inside: outer)
        try inner.handshake()
        #expect(inner.client.peerMaySpeak)
        #expect(inner.client.shutdownAll() == .done)
        #expect(try end(of: inner.server) == .end)
        #expect(try end(of: outer.server) == .end)
        #expect(inner.client.peerMaySpeak)
        #expect(outer.server.shutdown() == .done)
        #expect(try end(of: outer.client) == .end)
        #expect(!inner.client.peerMaySpeak)
    }

    /// Reads all bytes, and returns the result that follows them.
    private func end(of engine: TLSEngine) throws -> TLSEngine.ReadResult {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let result = try buffer.withUnsafeMutableBytes { try engine.read(into: $0) }
            guard case .bytes = result else { return result }
        }
    }

    /// Opens streams to such a server, writes a byte after the handshake, and closes them.
    private func writeByteAndClose(
        _ port: UInt16, prepare: @escaping @Sendable (RunLoop) -> Void = { _ in }
    ) throws {
        let findings = try onStreamThread { loop in
            prepare(loop)
            let (input, output) = securedStreams(port)
            input.open()
            output.open()
            #expect(output.writeAll([1]))
            input.close()
            output.close()
            return []
        }
        #expect(findings == [])
    }

    @Test func `a peer that goes on speaking is not listened to for ever`() throws {
        let (server, port) = try PythonServer.start(.flood)
        defer { server.terminate() }
        try writeByteAndClose(port)
        server.tell("go")
        // The limit is 256 KiB; the kernels' buffers hold some megabytes besides.
        let total = try #require(Int(try server.line(after: "STOPPED ")))
        #expect(total < 64_000_000)
    }

    @Test func `ST-24 ST-38 a waiting write fails when a read of another thread finds the connection lost`()
        throws
    {
        let (server, port) = try PythonServer.start(.broken)
        defer { server.terminate() }
        let findings = try onStreamThread { _ in
            let (input, output) = securedStreams(port)
            input.open()
            output.open()
            // As many bytes are there as are read ahead. So no event looks at what follows, and the read below does.
            try waitFor("the bytes") { input.hasBytesAvailable ? () : nil }
            // The one thread writes and the other one reads.
            nonisolated(unsafe) let written = output
            let writer = LoopThread { _ in
                let piece = [UInt8](repeating: 7, count: 65_536)
                while written.writeAll(piece) {}
                return "\(written.streamStatus == .error)"
            }
            try writer.loop.waitUntilAsleep()
            let findings = ["\(input.bytes().0)", try writer.value(), "\(input.bytes().0)"]
            input.close()
            output.close()
            return findings
        }
        #expect(findings == ["4096", "true", "-1"])
    }

    /// The while is the machine's, also where the loop of the closing thread has a clock of its own.
    @Test(arguments: [false, true])
    func `a peer that never ends is left after a while, and the loop goes on meanwhile`(isTomorrow: Bool)
        throws
    {
        let (server, port) = try PythonServer.start(.deaf)
        defer { server.terminate() }
        try writeByteAndClose(port) { loop in if isTomorrow { loop.setTimeSource(Tomorrow()) } }
        // The loader's loop serves others all the time.
        let turn = DispatchSemaphore(value: 0)
        RunLoop.loader.perform { turn.signal() }
        #expect(turn.wait(timeout: .now() + 30) == .success)
        try waitFor("the end of the close") { LingeringClose.count == 0 ? () : nil }
    }

    /// The machine's clock, a day ahead.
    private final class Tomorrow: LoopTimeSource {
        var now: LoopInstant { LoopClock.systemNow.advanced(bySeconds: 86_400) }

        func loopIsIdle(until instant: LoopInstant) -> Bool { false }
    }

    @Test func `close_notify waits for space like everything else`() throws {
        let (ours, theirs) = try PlainSocket.pair()
        var size: Int32 = 4_096
        setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let socket = try Socket(adopting: ours)
        let client = try TLSEngine(
            context: .shared(for: .test), descriptor: socket.descriptor, hostName: "localhost")
        let server = try BlockingTLSClient(accepted: theirs, settings: TLSServerTests.settings())
        var isDone = (client: false, server: false)
        while !isDone.client || !isDone.server {
            if !isDone.client { isDone.client = try client.handshake() == .done }
            if !isDone.server { isDone.server = try server.engine.handshake() == .done }
        }
        while !client.hasUnsentBytes { _ = try [UInt8(1)].withUnsafeBytes { try client.write($0) } }
        // Room for one record alone, and the one that waits takes it.
        while try client.flush() != .done { _ = try server.read(1) }
        #expect(client.shutdown() == .wantsWrite)
        var ends = false
        while !ends {
            var byte: UInt8 = 0
            let result = try withUnsafeMutableBytes(of: &byte) { try server.engine.read(into: $0) }
            if result == .wantsRead { break }
            ends = result == .end
        }
        #expect(!ends)
        #expect(client.shutdown() == .done)
        #expect(try server.read().0 == .end)
        client.detach()
    }
}
