import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests what a delegate is told about a response, and in which order.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ResponseTests {
    /// Answers each request on a connection with the given bytes, in the given pieces.
    private static func server(_ pieces: [String], closes: Bool = true) throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            for piece in pieces { try peer.send(piece) }
            if closes { peer.finish() }
            peer.waitForEnd()
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
    ])
    func `UC-20 an empty body gives no data`(response: String) throws {
        let recorder = try load(Self.server([response], closes: false).url())
        #expect(recorder.calls.count == 2)
        #expect(recorder.calls.last == "finish")
        #expect(recorder.pieces == [])
    }

    @Test func `UC-18 one terminal callback comes, and it is the last one`() throws {
        let finished = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]).url())
        #expect(finished.calls == ["response 200", "data", "finish"])
        let failed = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"]).url())
        #expect(failed.calls == ["response 200", "data", "fail -1005"])
    }

    @Test func `UC-19 the response precedes all data and never changes`() throws {
        let server = try Self.server([
            "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", "HTTP/1.1 200 Fine\r\nX-One: 1\r\nX-O",
            "ne: 2\r\nx-oNE: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "0\r\nX-Trailer: late\r\n\r\n",
        ])
        let recorder = try load(server.url())
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.responses.count == 1)
        let response = recorder.response
        #expect(response?.value(forHTTPHeaderField: "x-one") == "1, 2, 3")
        #expect(response?.value(forHTTPHeaderField: "X-Trailer") == nil)
        #expect(response?.value(forHTTPHeaderField: "Link") == nil)
        #expect(response?.url == server.url())
    }

    @Test func `UC-19 without a response there is only the failure`() throws {
        let recorder = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Le"]).url())
        #expect(recorder.calls == ["fail -1005"])
    }

    /// The framings, each a byte at a time, in small pieces, and whole.
    @Test(arguments: [1, 7, 100_000])
    func `UC-20 the pieces are the body exactly`(pieceSize: Int) throws {
        let body = longText(pieceSize == 1 ? 300 : 5_000)
        let half = body.index(body.startIndex, offsetBy: body.count / 2)
        let chunks = [body[..<half], body[half...]].map {
            "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n"
        }
        let responses = [
            "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks.joined())0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n\(body)", "HTTP/1.0 200 OK\r\n\r\n\(body)",
        ]
        for response in responses {
            var pieces: [String] = []
            var rest = Substring(response)
            while !rest.isEmpty {
                pieces.append(String(rest.prefix(pieceSize)))
                rest = rest.dropFirst(pieceSize)
            }
            let recorder = try load(Self.server(pieces).url())
            #expect(recorder.calls == ["response 200", "data", "finish"])
            #expect(recorder.hasBody(body))
            #expect(recorder.isMadeOfPieces)
        }
    }

    @Test func `UC-20 a delivered piece never changes afterwards`() throws {
        let body = longText(3_000_000)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: body)
            peer.waitForEnd()
        }
        let recorder = try load(server.url())
        // The pieces were kept while later ones were received into the same memory, or not.
        #expect(recorder.pieces.count > 5)
        #expect(recorder.isMadeOfPieces)
        #expect(recorder.hasBody(body))
    }

    @Test func `UC-21 a failure after data leaves the data with the delegate`() throws {
        let recorder = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"]).url())
        #expect(recorder.calls == ["response 200", "data", "fail -1005"])
        #expect(recorder.text == "half")
    }

    /// Made once where it would be the same, but only if the program does not hold it any more.
    @Test func `UC-19 a response that is still referred to is not given again`() throws {
        let head = ResponseHead(status: 200, fields: HeaderFields([("ETag", "1"), ("Content-Length", "5")]))
        let equal = ResponseHead(status: 200, fields: head.fields)
        let one = url("http://host.example/one")
        let memory = RecentResponses()
        let made = memory.response(to: one, head, bodyLength: 5)
        let kept = try #require(made)
        for _ in 0..<3 {
            let made = memory.response(to: one, head, bodyLength: 5)
            let next = try #require(made)
            #expect(next !== kept && next.isEqual(kept) && next.statusCode == 200)
        }
        let others = [
            memory.response(to: url("http://host.example/two"), head, bodyLength: 5),
            memory.response(to: one, head, bodyLength: 6), memory.response(to: one, equal, bodyLength: 5),
            memory.response(to: one, ResponseHead(status: 404, fields: head.fields), bodyLength: 5),
        ]
        #expect(others.map { $0?.url?.lastPathComponent } == ["two", "one", "one", "one"])
        #expect(others.map { $0?.expectedContentLength } == [5, 6, 5, 5])
        #expect(others.map { $0?.statusCode } == [200, 200, 200, 404])
        #expect(kept.url == one && kept.expectedContentLength == 5)
        #expect(kept.value(forHTTPHeaderField: "etag") == "1")
        weak let last = memory.response(to: one, head, bodyLength: 5)
        let again = memory.response(to: one, head, bodyLength: 5)
        #expect(again != nil && again === last)
    }

    @Test func `UC-19 a response that the program has released is given again, until too many others came`()
        throws
    {
        let head = ResponseHead(status: 200, fields: HeaderFields([("ETag", "1"), ("Content-Length", "5")]))
        let one = url("http://host.example/one")
        let memory = RecentResponses()
        func response(_ url: URL) -> LoadedResponse? { memory.response(to: url, head, bodyLength: 5) }
        // Only URLs of the same head are compared.
        func other(_ text: String) -> LoadedResponse? {
            memory.response(
                to: url(text), ResponseHead(status: 200, fields: head.fields), bodyLength: 5)
        }
        var kept = response(one)
        let identity = try ObjectIdentifier(#require(kept))
        var second = response(one)
        #expect(second != nil && second !== kept && second?.isEqual(kept) ?? false)
        kept = nil
        kept = response(one)
        #expect(kept.map { ObjectIdentifier($0) } == identity)
        kept = nil
        // The newer one of the two that are free.
        let newer = try ObjectIdentifier(#require(second))
        second = nil
        // Two of them are remembered already.
        for number in 0..<RecentResponses.maximum - 2 {
            let again = response(one)
            #expect(again.map { ObjectIdentifier($0) } == newer)
            #expect(other("http://host.example/\(number)")?.url?.lastPathComponent == "\(number)")
        }
        weak let last = response(one)
        #expect(last.map { ObjectIdentifier($0) } == newer)
        for number in 0..<2 { _ = other("http://other.example/\(number)") }
        #expect(last == nil)
    }

    /// The pages of a server, each with the same head.
    @Test(arguments: [20, RecentResponses.maximum + 20])
    func `UC-19 the last response is found again among many URLs with equal heads`(count: Int) {
        let head = ResponseHead(status: 200, fields: HeaderFields([("ETag", "1"), ("Content-Length", "5")]))
        let memory = RecentResponses()
        func response(_ number: Int) -> LoadedResponse? {
            memory.response(to: url("http://host.example/\(number)"), head, bodyLength: 5)
        }
        for number in 0..<count { _ = response(number) }
        weak let last = response(count - 1)
        let again = response(count - 1)
        #expect(again != nil && again === last)
    }

    @Test func `UC-25 expectedContentLength is the announced length, or -1`() throws {
        let announced = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"]).url())
        #expect(announced.response?.expectedContentLength == 4)
        let empty = try load(Self.server(["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]).url())
        #expect(empty.response?.expectedContentLength == 0)
        let chunked = try load(
            Self.server(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]).url())
        #expect(chunked.response?.expectedContentLength == NSURLResponseUnknownLength)
        let untilClose = try load(Self.server(["HTTP/1.1 200 OK\r\n\r\nbody"]).url())
        #expect(untilClose.response?.expectedContentLength == -1)
        for (field, length) in [("4", 4), ("4, 4", 4), ("-5", -1), ("x", -1)] as [(String, Int64)] {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(field)\r\n\r\n"
            let server = try Self.server([answer], closes: false)
            var head = URLRequest(url: server.url())
            head.httpMethod = "HEAD"
            #expect(try load(head).response?.expectedContentLength == length)
        }
    }

    @Test func `UC-26 mimeType and textEncodingName come from Content-Type`() throws {
        let recorder = try load(
            Self.server([
                "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset=UTF-8\r\nContent-Length: 0\r\n\r\n"
            ]).url("/folder/page.html?query"))
        #expect(recorder.response?.mimeType == "text/html")
        #expect(recorder.response?.textEncodingName?.lowercased() == "utf-8")
        #expect(recorder.response?.suggestedFilename == "page.html")
    }

    @Test(arguments: [404, 500, 503])
    func `UC-27 an HTTP error status is a response like any other`(status: Int) throws {
        let recorder = try load(
            Self.server(["HTTP/1.1 \(status) Sorry\r\nContent-Length: 5\r\n\r\nsorry"]).url())
        #expect(recorder.calls == ["response \(status)", "data", "finish"])
        #expect(recorder.text == "sorry")
    }

    @Test func `UC-35 a body goes with its length, and progress is told`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "taken")
            peer.waitForEnd()
        }
        var request = URLRequest(url: server.url("/form"))
        request.httpMethod = "POST"
        request.httpBody = Data(longText(700_000).utf8)
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        let recorder = try load(request)
        #expect(recorder.text == "taken")
        let received = server.requests.first
        #expect(received?.method == "POST")
        #expect(received?.value("Content-Length") == "700000")
        #expect(received?.value("Content-Type") == "text/plain")
        #expect(received.map { $0.body == request.httpBody } == true)
        #expect(recorder.sent.last.map { Array($0.dropFirst()) } == [700_000, 700_000])
        #expect(recorder.sent.map { $0[0] }.reduce(0, +) == 700_000)
    }

    @Test func `RFC 9110 7.2 a load by IPv6 names its address as Host`() throws {
        let server = try TestServer(.ipv6) { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "six")
            peer.waitForEnd()
        }
        let recorder = try load(server.url())
        #expect(recorder.text == "six")
        #expect(server.requests.first?.value("Host") == "[::1]:\(server.port)")
    }

    // MARK: - Strangers

    @Test func `UC-20 a file from Python's http.server is whole`() throws {
        let directory = try Stranger.Directory()
        let data = Data(longText(5_000_000).utf8)
        try directory.write(data, to: "file.txt")
        let (server, port) = try Stranger.python(directory: directory.path)
        let recorder = try load(url("http://localhost:\(port)/file.txt"))
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(data))
        #expect(recorder.response?.mimeType == "text/plain")
        let missing = try load(url("http://localhost:\(port)/missing"))
        #expect(missing.calls == ["response 404", "data", "finish"])
        // A directory without its slash is a redirect.
        try FileManager.default.createDirectory(
            atPath: directory.path + "/folder", withIntermediateDirectories: true)
        let folder = try load(url("http://localhost:\(port)/folder"))
        #expect(folder.calls.first == "willSend 301 http://localhost:\(port)/folder/")
        #expect(folder.calls.last == "finish")
        server.terminate()
    }

    @Test(.enabled(if: Stranger.hasNginx)) func `UC-20 a file from nginx is whole, by HTTP and HTTPS`() throws
    {
        let directory = try Stranger.Directory()
        let data = Data(longText(5_000_000).utf8)
        try directory.write(data, to: "file.txt")
        let (server, http, https) = try Stranger.nginx(directory: directory.path)
        for url in [url("http://127.0.0.1:\(http)/file.txt"), url("https://localhost:\(https)/file.txt")] {
            let recorder = try load(url) { $0.trustTestAuthority() }
            #expect(recorder.calls == ["response 200", "data", "finish"])
            #expect(recorder.hasBody(data))
        }
        server.terminate()
    }

    @Test func `UC-20 a page from openssl s_server is whole`() throws {
        let (server, port) = try OpenSSLPages.start()
        let recorder = try load(url("https://localhost:\(port)/")) { $0.trustTestAuthority() }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.text.contains("s_server"))
        server.terminate()
    }
}
