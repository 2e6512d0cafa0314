import Rondo
import RondoTestSupport
import Testing

@testable import RondoCommand

/// The server of `rondo serve` in this process, against Python.
struct FileServerTests {
    /// Makes `ask(n)`, which asks the server at the port of the first argument for so many bytes, with a small buffer.
    private static let head = """
        import socket, sys
        def ask(count):
            s = socket.socket()
            s.settimeout(30)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(('127.0.0.1', int(sys.argv[1])))
            s.sendall(b'GET /bytes/%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' % count)
            return s

        """

    private static var settings: ServedConnection.Settings {
        ServedConnection.Settings(
            responder: Responder(site: Site(folder: nil, size: 1)), rate: nil, log: nil)
    }

    private func port(in log: EventLog) throws -> String {
        try waitFor("the port") { log.entries.first }
    }

    @Test(arguments: [(600, "503"), (0, "200")] as [(Double, String)])
    func `clients that take nothing make room for others after a while`(yieldTime: Double, status: String)
        throws
    {
        let log = EventLog()
        let thread = LoopThread { loop in
            var settings = Self.settings
            settings.yieldTime = yieldTime
            // Without a server no port is noted, and the wait for it fails the test.
            guard
                let server = try? FileServer(
                    settings, address: "127.0.0.1", port: 0, identity: nil, loop: loop)
            else { return }
            log.note("\(server.port)")
            _ = loop.run(in: .default, for: testPatience + 5, returnAfterSourceHandled: false)
            withExtendedLifetime(server) {}
        }
        let script = """
            # As many as there is room for, and none is idle.
            stalled = [ask(10 ** 12) for _ in range(256)]
            for s in stalled: s.recv(1)
            # None makes room before its buffers are full.
            for _ in range(10000):
                status = ask(1).recv(100).split()[1].decode()
                if status == sys.argv[2]: break
            print(status)
            """
        let output = try TestServerProcess.run([
            "python3", "-c", Self.head + script, try port(in: log), status,
        ])
        try thread.loop.stop()
        try thread.value()
        #expect(output == status)
    }

    /// Bytes that the system holds for a client count as taken.
    @Test func `the system holds little of a response for a client that does not take it`() throws {
        let log = EventLog()
        let thread = LoopThread { loop in
            var served: ServedConnection?
            guard let listener = try? StreamListener(port: 0, host: "127.0.0.1") else { return }
            listener.onConnection = { connection in
                served = ServedConnection(connection, Self.settings) { _ in }
                served?.start(in: loop)
            }
            listener.schedule(in: loop, forMode: .default)
            log.note("\(listener.port)")
            let limit = ContinuousClock.now + .seconds(testPatience)
            while served?.secondsStalled(beyond: 0) == nil, ContinuousClock.now < limit {
                _ = loop.run(in: .default, for: 0.01, returnAfterSourceHandled: true)
            }
            served?.end()
        }
        let script = """
            s, count = ask(10 ** 12), 0
            sys.stdin.read()
            while more := s.recv(65536): count += len(more)
            print('taken', count)
            """
        let client = try TestServerProcess(["python3", "-c", Self.head + script, try port(in: log)])
        defer { client.terminate() }
        try thread.value()
        client.closeInput()
        let count = try #require(Int(try client.line(after: "taken ")))
        #expect(0 < count && count < 1 << 20)
    }
}
