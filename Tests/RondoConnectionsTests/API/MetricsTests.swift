import Rondo
import RondoTestSupport
import Testing

/// Tests the metrics that tell where the time of a load went.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct MetricsTests {
    private final class Measuring: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()
        let metrics = Box<URLConnection.Metrics?>(nil)
        let onResponse: @Sendable (URLConnection) -> Void

        init(onResponse: @escaping @Sendable (URLConnection) -> Void = { _ in }) {
            self.onResponse = onResponse
        }

        func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
            self.metrics.value = metrics
            log.note("metrics")
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            onResponse(connection)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) { log.note("fail") }
    }

    private static func run(
        _ request: URLRequest, _ delegate: Measuring, proxy: UInt16? = nil, queue: OperationQueue? = nil
    ) throws {
        try onLoopThread { loop in
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            connection?.trustTestAuthority()
            if let proxy {
                connection?.configuration.proxy = .by(
                    StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy)))
            }
            connection?.schedule(in: loop, forMode: .default)
            connection?.start()
            loop.runOut()
        }
    }

    @Test func `metrics come once, right before the last call, and tell each transfer`() throws {
        let server = try TestServer.redirecting(
            "/old", to: "/new", "307 Temporary Redirect", moved: "moved"
        ) { _ in longText(300_000) }
        var request = URLRequest(url: server.url("/old"))
        request.httpMethod = "PUT"
        request.httpBody = Data(longText(1000).utf8)
        let delegate = Measuring()
        try Self.run(request, delegate)
        #expect(delegate.log.entries == ["metrics", "finish"])
        let metrics = try #require(delegate.metrics.value)
        #expect(metrics.redirectCount == 1)
        try #require(metrics.transfers.map(\.url) == [server.url("/old"), server.url("/new")])
        #expect(metrics.transfers.map(\.status) == [307, 200])
        #expect(metrics.transfers.map(\.isReusedConnection) == [false, true])
        #expect(metrics.transfers.allSatisfy { $0.bodyBytesSent == 1000 && $0.method == "PUT" })
        let last = metrics.transfers[1]
        #expect(last.bodyBytesReceived == 300_000)
        #expect(last.bytesReceived > 300_000)
        #expect(last.headBytesSent > 0)
        #expect(last.remoteAddress?.contains("127.0.0.1") == true)
        #expect(last.connectStart == nil)
        let first = metrics.transfers[0]
        let moments = [
            first.connectStart, first.connectEnd, first.requestStart, first.requestEnd, first.responseStart,
            first.responseEnd, metrics.duration,
        ]
        #expect(moments.allSatisfy { $0 != nil })
        #expect(moments.compactMap { $0 } == moments.compactMap { $0 }.sorted())
    }

    @Test func `metrics have the moments of the look-up and of TLS, in order`() throws {
        let (server, port) = try OpenSSLPages.start()
        let delegate = Measuring()
        try Self.run(URLRequest(url: url("https://localhost:\(port)/")), delegate)
        let transfer = try #require(delegate.metrics.value?.transfers.first)
        #expect(transfer.tlsVersion?.hasPrefix("TLSv1") == true)
        #expect(transfer.tlsCipher?.isEmpty == false)
        let moments = [
            transfer.lookUpStart, transfer.lookUpEnd, transfer.connectStart, transfer.connectEnd,
            transfer.secureStart, transfer.secureEnd, transfer.requestStart,
        ]
        #expect(moments.allSatisfy { $0 != nil })
        #expect(moments.compactMap { $0 } == moments.compactMap { $0 }.sorted())
        server.terminate()
    }

    @Test func `the time that a proxy takes is not that of TLS`() throws {
        let (server, port) = try OpenSSLPages.start()
        let seconds = Box(0.0)
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            let asked = ProcessInfo.processInfo.systemUptime
            seconds.value = ProcessInfo.processInfo.systemUptime - asked
            try peer.send("HTTP/1.1 200 Connected\r\n\r\n")
            try peer.relay(to: port)
        }
        let delegate = Measuring()
        try Self.run(URLRequest(url: url("https://localhost:\(port)/")), delegate, proxy: proxy.port)
        let transfer = try #require(delegate.metrics.value?.transfers.first)
        let connectEnd = try #require(transfer.connectEnd)
        let secureStart = try #require(transfer.secureStart)
        let secureEnd = try #require(transfer.secureEnd)
        // A nanosecond for rounding.
        #expect(seconds.value > 1e-9 && secureStart - connectEnd > seconds.value - 1e-9)
        #expect(secureEnd >= secureStart)
        server.terminate()
    }

    @Test func `metrics come before a failure too, and not after a cancel`() throws {
        let failing = Measuring()
        try Self.run(URLRequest(url: url("http://127.0.0.1:1/")), failing)
        #expect(failing.log.entries == ["metrics", "fail"])
        #expect(failing.metrics.value?.transfers.first?.status == nil)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "here")
            peer.waitForEnd()
        }
        let cancelling = Measuring { $0.cancel() }
        try Self.run(URLRequest(url: server.url()), cancelling)
        #expect(cancelling.log.entries == [])
    }
}
