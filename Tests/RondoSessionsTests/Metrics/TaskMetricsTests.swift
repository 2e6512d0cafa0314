import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct TaskMetricsTests {
    private static func dates(_ transaction: URLSessionTaskTransactionMetrics) -> [Date?] {
        [
            transaction.fetchStartDate, transaction.domainLookupStartDate, transaction.domainLookupEndDate,
            transaction.connectStartDate, transaction.secureConnectionStartDate,
            transaction.secureConnectionEndDate, transaction.connectEndDate, transaction.requestStartDate,
            transaction.requestEndDate, transaction.responseStartDate, transaction.responseEndDate,
        ]
    }

    @Test func `US-67 each request has a transaction, with dates in order, bytes and both ends`() throws {
        let server = try TestServer.redirecting(
            "/old", to: "/new", "307 Temporary Redirect", moved: "moved"
        ) { _ in String(repeating: "x", count: 1000) }
        let delegate = Measuring()
        let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
        var request = URLRequest(url: server.url("/old"))
        request.httpMethod = "PUT"
        request.httpBody = Data(repeating: 1, count: 300)
        let before = Date()
        session.dataTask(with: request).resume()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        #expect(delegate.log.entries == ["metrics", "complete 0"])
        let metrics = try #require(delegate.metrics.value.first)
        #expect(metrics.redirectCount == 1)
        #expect(metrics.taskInterval.start >= before.addingTimeInterval(-0.01))
        #expect(metrics.taskInterval.end <= Date().addingTimeInterval(0.01))
        let transactions = metrics.transactionMetrics
        try #require(transactions.count == 2)
        try #require(transactions.map { $0.request.url } == [server.url("/old"), server.url("/new")])
        #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [307, 200])
        #expect(transactions.map(\.isReusedConnection) == [false, true])
        for transaction in transactions {
            #expect(transaction.networkProtocolName == "http/1.1")
            #expect(transaction.resourceFetchType == .networkLoad)
            #expect(transaction.remoteAddress == "127.0.0.1")
            #expect(transaction.remotePort == Int(server.port))
            #expect(transaction.localAddress == "127.0.0.1")
            #expect(transaction.localPort ?? 0 > 0)
            #expect(transaction.negotiatedTLSProtocolVersion == nil)
            #expect(transaction.countOfRequestBodyBytesSent == 300)
            #expect(transaction.countOfRequestHeaderBytesSent > 0)
            #expect(!transaction.isProxyConnection)
        }
        // The body of a redirect is not waited for.
        #expect(transactions[1].countOfResponseBodyBytesReceived == 1000)
        #expect(transactions[1].countOfResponseHeaderBytesReceived > 0)
        for transaction in transactions {
            let dates = Self.dates(transaction).compactMap { $0 }
            #expect(dates == dates.sorted())
        }
        // An address is not looked up, and there is no TLS.
        #expect(
            Self.dates(transactions[0]).map { $0 != nil }
                == [true, false, false, true, false, false, true, true, true, true, true])
        #expect(
            Self.dates(transactions[1]).map { $0 != nil }
                == [true, false, false, false, false, false, false, true, true, true, true])
        session.invalidateAndCancel()
    }

    /// The first transaction of a task, and the calls of its delegate.
    private static func firstTransaction(
        _ url: String, _ configure: (URLSessionConfiguration) -> Void
    ) throws -> (URLSessionTaskTransactionMetrics, calls: [String]) {
        let (delegate, configuration) = (Measuring(), URLSessionConfiguration.default)
        configure(configuration)
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: try #require(URL(string: url))).resume()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        session.invalidateAndCancel()
        let transaction = try #require(delegate.metrics.value.first?.transactionMetrics.first)
        return (transaction, delegate.log.entries)
    }

    @Test func `US-67 TLS has its dates, version and cipher suite`() throws {
        let (server, port) = try OpenSSLPages.start(
            .good, ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"])
        defer { server.terminate() }
        let (transaction, calls) = try Self.firstTransaction("https://localhost:\(port)/") {
            $0.trustTestAuthority()
        }
        #expect(calls == ["metrics", "complete 0"])
        #expect(Self.dates(transaction).allSatisfy { $0 != nil })
        #expect(transaction.negotiatedTLSProtocolVersion == .TLSv12)
        #expect(transaction.negotiatedTLSCipherSuite?.rawValue == 0xC02B)
    }

    @Test func `US-67 a TLS handshake that fails has begun, and the connection is not ready`() throws {
        let (server, port) = try OpenSSLPages.start(.expired)
        defer { server.terminate() }
        let (transaction, _) = try Self.firstTransaction("https://localhost:\(port)/") {
            $0.trustTestAuthority()
        }
        let dates = Self.dates(transaction)
        #expect(dates[..<5].allSatisfy { $0 != nil })
        #expect(dates[5...].allSatisfy { $0 == nil })
        #expect(dates.compactMap { $0 } == dates.compactMap { $0 }.sorted())
    }

    @Test func `US-67 a connection whose proxy refuses the tunnel is not ready`() throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            peer.waitForEnd()
        }
        let (transaction, _) = try Self.firstTransaction("https://a.example/") {
            $0.goBy("HTTPS", proxy.port)
        }
        #expect(transaction.isProxyConnection && transaction.connectStartDate != nil)
        #expect(transaction.secureConnectionStartDate == nil && transaction.connectEndDate == nil)
        #expect(transaction.requestStartDate == nil)
    }

    @Test func `US-67 a kept connection has the negotiated version and cipher, without the dates of TLS`()
        throws
    {
        let (server, port) = try pythonTLSServer()
        defer { server.terminate() }
        let delegate = Measuring()
        let configuration = URLSessionConfiguration.default
        configuration.trustTestAuthority()
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        for count in 1...2 {
            session.dataTask(with: try #require(URL(string: "https://localhost:\(port)/"))).resume()
            try waitFor("the end") { delegate.log.entries.count == 2 * count ? () : nil }
        }
        let transactions = delegate.metrics.value.compactMap(\.transactionMetrics.first)
        try #require(transactions.map(\.isReusedConnection) == [false, true])
        #expect(transactions.map(\.negotiatedTLSProtocolVersion) == [.TLSv13, .TLSv13])
        #expect(transactions[0].negotiatedTLSCipherSuite != nil)
        #expect(transactions[0].negotiatedTLSCipherSuite == transactions[1].negotiatedTLSCipherSuite)
        #expect(transactions[1].secureConnectionStartDate == nil)
        session.invalidateAndCancel()
    }

    @Test func `US-67 resourceFetchType tells answers of the cache from those of servers`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("If-None-Match") != nil {
                    try peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n")
                } else {
                    let age = request.target == "/fresh" ? "max-age=1000" : "no-cache"
                    try peer.respond("200 OK", ["ETag: \"1\"", "Cache-Control: \(age)"], body: "kept")
                }
            }
        }
        let delegate = Measuring()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        for (number, target) in ["/fresh", "/fresh", "/old", "/old"].enumerated() {
            session.dataTask(with: server.url(target)).resume()
            try waitFor("an end") { delegate.log.entries.count == 2 * (number + 1) ? () : nil }
        }
        let found = delegate.metrics.value.map { metrics in
            metrics.transactionMetrics.map {
                "\($0.resourceFetchType) \(($0.response as? HTTPURLResponse)?.statusCode ?? 0)"
            }
        }
        try #require(
            found == [
                ["networkLoad 200"], ["localCache 200"], ["networkLoad 200"],
                ["networkLoad 304", "localCache 200"],
            ])
        let kept = try #require(delegate.metrics.value[1].transactionMetrics.first)
        #expect(kept.networkProtocolName == nil)
        #expect(kept.remoteAddress == nil)
        session.invalidateAndCancel()
    }

    @Test func `US-66 metrics come once, right before the end, also of failed and cancelled tasks`() throws {
        let refused = try RefusedPort()
        let delegate = Measuring()
        let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
        let target = try #require(URL(string: "http://127.0.0.1:\(refused.port)/"))
        session.dataTask(with: target).resume()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        session.dataTask(with: target).cancel()
        try waitFor("the end") { delegate.log.entries.count == 4 ? () : nil }
        #expect(delegate.log.entries == ["metrics", "complete -1004", "metrics", "complete -999"])
        try #require(delegate.metrics.value.map(\.transactionMetrics.count) == [1, 0])
        #expect(delegate.metrics.value[0].transactionMetrics[0].response == nil)
        // Nothing was sent, and nothing came.
        #expect(Self.dates(delegate.metrics.value[0].transactionMetrics[0])[7...].allSatisfy { $0 == nil })
        session.invalidateAndCancel()
    }

    @Test func `US-66 metrics come before a completion handler as well`() throws {
        let server = try echoServer()
        let delegate = Measuring()
        let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: server.url()) { _, _, _ in delegate.log.note("handler") }.resume()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        #expect(delegate.log.entries == ["metrics", "handler"])
        session.invalidateAndCancel()
    }

    @Test func `US-67 a request that cannot be written is tried once, over a kept connection too`() throws {
        let server = try echoServer()
        let delegate = Measuring()
        let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        try waitFor("the first end") { delegate.log.entries.count == 2 ? () : nil }
        var request = URLRequest(url: server.url())
        request.httpMethod = "NO METHOD"
        session.dataTask(with: request).resume()
        try waitFor("the second end") { delegate.log.entries.count == 4 ? () : nil }
        #expect(delegate.log.entries == ["metrics", "complete 0", "metrics", "complete -1000"])
        #expect(delegate.metrics.value.last?.transactionMetrics.count == 1)
        #expect(server.requests.count == 1)
    }
}
