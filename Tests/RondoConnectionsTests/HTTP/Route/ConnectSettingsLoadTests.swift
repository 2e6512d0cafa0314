import Rondo
import RondoStreams
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// Loads whose connections lead elsewhere than their URLs say, and limits of loads.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ConnectSettingsLoadTests {
    /// Answers with the number of the connection, from 0.
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond(body: "\(peer.number)")
            }
        }
    }

    private static func place(_ server: TestServer) -> ConnectSettings.Place {
        .init(host: "127.0.0.1", port: Int(server.port))
    }

    @Test func `UC-76 an address that stands for a host is connected to, and the host is what is said`()
        throws
    {
        let server = try Self.server()
        let recorder = try load(url("http://nowhere.invalid:\(server.port)/")) {
            $0.configuration.connect.addresses[.init(host: "nowhere.invalid", port: Int(server.port))] = [
                "127.0.0.1"
            ]
        }
        #expect(recorder.text == "0")
        #expect(server.requests.map { $0.value("Host") } == ["nowhere.invalid:\(server.port)"])
    }

    @Test func `UC-76 a connection through a detour serves no load without that detour`() throws {
        let (named, other) = (try Self.server(), try Self.server())
        let detour = ConnectSettings.Detour(
            fromHost: "127.0.0.1", fromPort: Int(named.port), toPort: Int(other.port))
        try onLoopThread { loop in
            for (detours, isOther) in [([detour], true), ([], false), ([detour], true), ([], false)] {
                let recorder = Recorder()
                let connection = URLConnection(
                    request: URLRequest(url: named.url()), delegate: recorder, startImmediately: false)
                connection?.configuration.connect.detours = detours
                connection?.start()
                loop.runOut()
                #expect(recorder.text == "0", "\(isOther)")
            }
        }
        #expect((named.requests.count, other.requests.count) == (2, 2))
        #expect((named.accepted, other.accepted) == (1, 1))
    }

    @Test func `UC-76 a host without an address of the wanted kind is not found`() throws {
        let server = try Self.server()
        let recorder = try load(server.url()) { $0.configuration.connect.addressFamilies = .ipv6 }
        #expect(recorder.error?.code == .cannotConnectToHost)
        let named = try load(url("http://localhost:\(server.port)/")) {
            $0.configuration.connect.addressFamilies = .ipv4
        }
        #expect(named.text == "0")
        #expect(try load(server.url()) { $0.configuration.connect.addressFamilies = .ipv4 }.text == "1")
    }

    @Test func `UC-76 a connection comes from the address that it is bound to, and the metrics say so`()
        throws
    {
        let server = try Self.server()
        let metrics = Box<URLConnection.Metrics?>(nil)
        try onLoopThread { loop in
            let delegate = MetricsDelegate(metrics)
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: delegate, startImmediately: false)
            connection?.configuration.connect.localEnd = .address("127.0.0.3")
            connection?.start()
            loop.runOut()
        }
        let local = metrics.value?.transfers.first?.localAddress
        #expect(local?.hasPrefix("127.0.0.3:") == true, "\(local ?? "nil")")
    }

    private final class MetricsDelegate: NSObject, URLConnectionDelegate, Sendable {
        private let metrics: Box<URLConnection.Metrics?>

        init(_ metrics: Box<URLConnection.Metrics?>) { self.metrics = metrics }

        func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
            self.metrics.value = metrics
        }
    }

    @Test func `UC-76 HTTP is spoken over a Unix socket, and Host says what the URL does`() throws {
        let path = NSTemporaryDirectory() + "/rondo-unix-\(UUID().uuidString.prefix(8))"
        defer { unlink(path) }
        let program = """
            import socket, sys
            s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print("ready", flush=True)
            c, _ = s.accept(); f = c.makefile("rwb"); lines = []
            while (line := f.readline().strip()): lines.append(line)
            body = b"|".join(lines); f.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body); f.flush()
            c.recv(1)
            """
        let server = try TestServerProcess(["python3", "-c", program, path])
        defer { server.terminate() }
        _ = try server.line(after: "ready")
        let recorder = try load(url("http://docker.example/v1/info")) {
            $0.configuration.connect.unixSocketPath = path
        }
        #expect(recorder.text.hasPrefix("GET /v1/info HTTP/1.1|Host: docker.example|"), "\(recorder.text)")
    }

    @Test func `UC-76 a server that says nothing to TLS fails the load when connecting has had its time`()
        throws
    {
        let server = try TestServer { $0.waitForEnd() }
        let recorder = try load(url("https://127.0.0.1:\(server.port)/")) {
            $0.configuration.connect.timeout = 0.05
        }
        #expect(recorder.error?.code == .timedOut)
        #expect(recorder.error?.localizedDescription.contains("0.05 s") == true)
    }

    @Test func `UC-75 a load ends when the time is over that it has in all, though bytes still come`() throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            while true {
                try peer.send("x")
                sched_yield()
            }
        }
        // Each piece of the body takes three seconds.
        let clock = ManualClock(advancesAutomatically: false)
        let pieces = Box(0)
        let recorder = Recorder { call, _ in
            guard call == .data else { return }
            pieces.mutate { $0 += 1 }
            clock.advance(by: 3)
        }
        try onLoopThread { loop in
            clock.attach(to: loop)
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.configuration.totalTimeout = 10
            connection?.start()
            loop.runOut()
        }
        #expect(recorder.error?.code == .timedOut)
        #expect(recorder.error?.localizedDescription.contains("10 s") == true)
        #expect(recorder.response?.statusCode == 200)
        #expect((4...5).contains(pieces.value))
    }

    @Test func `UC-77 a redirect is a response like any other where none is followed`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("302 Found", ["Location: nowhere://"], body: "moved")
            }
        }
        let recorder = try load(server.url()) { $0.configuration.redirects.follows = false }
        #expect(recorder.calls == ["response 302", "data", "finish"])
        #expect(recorder.text == "moved")
    }

    @Test(arguments: [0, 3, 40]) func `UC-77 as many redirects are followed as the policy says`(maximum: Int)
        throws
    {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("302 Found", ["Location: /"])
            }
        }
        let recorder = try load(server.url()) { $0.configuration.redirects.maximum = maximum }
        #expect(recorder.error?.code == .httpTooManyRedirects)
        #expect(server.requests.count == maximum + 1)
    }

    @Test func `UC-78 additional fields are sent as often as they are given, secrets to one origin only`()
        throws
    {
        let other = try Self.server()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: \(other.url())", "Connection: close"])
        }
        var request = URLRequest(url: server.url())
        request.setValue("own", forHTTPHeaderField: "X-B")
        try load(request) {
            $0.configuration.additionalFields = [
                .init(name: "X-A", value: "1"), .init(name: "X-A", value: "2"),
                .init(name: "Cookie", value: "s"), .init(name: "authorization", value: "a"),
                .init(name: "Proxy-Authorization", value: "p"),
            ]
        }
        let seen = (server.requests + other.requests).map { request in
            request.lines.filter { line in
                ["X-", "Cookie", "authorization", "Proxy-"].contains { line.hasPrefix($0) }
            }
        }
        #expect(
            seen == [
                [
                    "X-B: own", "X-A: 1", "X-A: 2", "Cookie: s", "authorization: a",
                    "Proxy-Authorization: p",
                ], ["X-B: own", "X-A: 1", "X-A: 2"],
            ])
    }

    @Test func `UC-78 the request line names the target that the settings name, and the URL stays`() throws {
        let server = try Self.server()
        let recorder = try load(server.url("/page?a")) { $0.configuration.requestTarget = "/other" }
        #expect(server.requests.map(\.target) == ["/other"])
        #expect(recorder.response?.url == server.url("/page?a"))
    }

    @Test
    func
        `UC-78 RFC 9112 3_2_4 a proxy gets the named target with the server's address, and for * that alone`()
        throws
    {
        let proxy = try Self.server()
        for target in ["*", "/other", "http://other.test/x"] {
            try load(url("http://named.test:81/page")) {
                $0.configuration.proxy = .by(
                    StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
                $0.configuration.requestTarget = target
            }
        }
        #expect(
            proxy.requests.map(\.target) == [
                "http://named.test:81", "http://named.test:81/other", "http://other.test/x",
            ])
    }

    @Test func `UC-79 content is handed on as it is transferred where it is not to be decoded`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Content-Encoding: gzip"], body: "not gzip at all")
            }
        }
        #expect(try load(server.url()).error?.code == .cannotDecodeRawData)
        let recorder = try load(server.url()) { $0.configuration.decodesContent = false }
        #expect(recorder.text == "not gzip at all")
    }

    @Test func `UC-79 a load keeps to its rate on the average`() throws {
        var pace = ReceivePace(bytesPerSecond: 1000)
        let start = LoopInstant(nanoseconds: 0)
        #expect(pace.received(1, at: start) == nil)
        #expect(abs((pace.received(499, at: start) ?? 0) - 0.5) < 1e-6)
        #expect(abs((pace.received(500, at: LoopInstant(nanoseconds: 500_000_000)) ?? 0) - 0.5) < 1e-6)
        // Time that passed without bytes is not made up for.
        #expect(abs((pace.received(1000, at: LoopInstant(nanoseconds: 9_000_000_000)) ?? 0) - 1) < 1e-6)

        let body = String(repeating: "x", count: 300_000)
        let server = try TestServer.answering { _ in body }
        let clock = ContinuousClock.now
        let recorder = try load(server.url()) { $0.configuration.maximumBytesPerSecond = 2_000_000 }
        #expect(recorder.hasBody(body))
        #expect(ContinuousClock.now - clock > .milliseconds(100))
    }
}
