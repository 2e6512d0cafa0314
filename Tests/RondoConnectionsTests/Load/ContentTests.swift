import Rondo
import RondoTestSupport
import Testing

/// Content codings and multipart/x-mixed-replace, from servers of all kinds.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ContentTests {
    private static let text = longText(200_000)

    /// Python encodes by its own zlib and sends in small pieces; `X-Send` says what.
    private static func encodingServer() throws -> (TestServerProcess, UInt16) {
        let script = """
            import gzip, http.server, sys, zlib
            text = "".join(str(i) + "." for i in range(60000))[:200000].encode()
            raw = zlib.compressobj(9, zlib.DEFLATED, -15)
            bodies = {
                "/gzip": ("gzip", gzip.compress(text)), "/x-gzip": ("x-gzip", gzip.compress(text)),
                "/deflate": ("deflate", zlib.compress(text)),
                "/raw": ("deflate", raw.compress(text) + raw.flush()),
                "/both": ("deflate, gzip", gzip.compress(zlib.compress(text))),
                "/garbage": ("gzip", gzip.compress(text) + b"garbage"), "/empty": ("gzip", b""),
                "/cut": ("gzip", gzip.compress(text)[:-1000]), "/lie": ("gzip", text),
                "/short": ("gzip", gzip.compress(text)[:-1000]), "/bomb": ("gzip", gzip.compress(bytes(1 << 28))), "/unknown": ("compress", text),
                "/deep": ("gzip, gzip, gzip, gzip, gzip, gzip", text), "/plain": (None, text),
            }
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
                def do_HEAD(self): self.do_GET()
                def do_GET(self):
                    coding, body = bodies[self.path]
                    self.send_response(200)
                    if coding: self.send_header("Content-Encoding", coding)
                    self.send_header("X-Accept-Encoding", self.headers.get("Accept-Encoding", "none"))
                    self.send_header("Content-Length", str(len(body) + (10 if self.path == "/short" else 0)))
                    self.close_connection = self.path == "/short"
                    self.end_headers()
                    if self.command == "GET":
                        for i in range(0, len(body), 1000): self.wfile.write(body[i:i + 1000])
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print("PORT", server.server_address[1], flush=True)
            server.serve_forever()
            """
        let server = try TestServerProcess(["python3", "-c", script])
        return (server, try server.port(after: "PORT "))
    }

    @Test(arguments: ["gzip", "x-gzip", "deflate", "raw", "both", "garbage", "plain", "unknown"])
    func `UC-20 encoded content is decoded as it comes`(_ path: String) throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        let recorder = try load(url("http://127.0.0.1:\(port)/\(path)"))
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(Self.text))
        let accepted = recorder.response?.value(forHTTPHeaderField: "X-Accept-Encoding")
        #expect(accepted?.hasPrefix("gzip, deflate") == true)
    }

    @Test func `UC-25 expectedContentLength is the transferred length, also of encoded content`() throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        let recorder = try load(url("http://127.0.0.1:\(port)/gzip"))
        let length = recorder.response?.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
        #expect(recorder.response?.expectedContentLength == length)
        #expect(length.map { $0 < 200_000 } == true)
        #expect(recorder.response?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
    }

    /// Content that ends early with its connection means a lost connection. Content that is whole and cannot be decoded
    /// is raw data that cannot be decoded (Apple's `NSURLErrorCannotDecodeRawData`).
    @Test(arguments: [("short", -1005), ("cut", -1015), ("lie", -1015), ("bomb", -1103), ("deep", -1016)])
    func `UC-59 a load whose content cannot be decoded fails after the decoded part`(
        _ path: String, _ code: Int
    ) throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        let recorder = try load(url("http://127.0.0.1:\(port)/\(path)"))
        #expect(recorder.calls.last == "fail \(code)")
        #expect(recorder.body.count <= 1 << 26)
        #expect(recorder.error?.localizedDescription.contains("127.0.0.1") == true)
        if path == "cut" {
            #expect(!recorder.body.isEmpty && Self.text.utf8.starts(with: recorder.body))
        }
    }

    @Test func `an empty body, and HEAD, have nothing to decode`() throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        #expect(try load(url("http://127.0.0.1:\(port)/empty")).calls == ["response 200", "finish"])
        var request = URLRequest(url: url("http://127.0.0.1:\(port)/gzip"))
        request.httpMethod = "HEAD"
        #expect(try load(request).calls == ["response 200", "finish"])
    }

    @Test func `the limits of decoded content are settable, and Accept-Encoding can be left out`() throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        let limited = try load(url("http://127.0.0.1:\(port)/gzip")) {
            $0.configuration.contentLimits.maximumSize = 100_000
        }
        #expect(limited.calls.last == "fail -1103")
        let generous = try load(url("http://127.0.0.1:\(port)/bomb")) {
            $0.configuration.contentLimits.maximumRatio = 2_000
        }
        #expect(generous.calls.last == "finish" && generous.body.count == 1 << 28)
        let plain = try load(url("http://127.0.0.1:\(port)/plain")) {
            $0.configuration.omittedFields = ["accept-encoding"]
        }
        #expect(plain.response?.value(forHTTPHeaderField: "X-Accept-Encoding") == "none")
        var part = URLRequest(url: url("http://127.0.0.1:\(port)/plain"))
        part.setValue("bytes=0-1", forHTTPHeaderField: "Range")
        let ranged = try load(part)
        #expect(ranged.response?.value(forHTTPHeaderField: "X-Accept-Encoding") == "identity")
    }

    @Test func `UC-12 content that is decoded waits for the mode, and for a slow queue`() throws {
        let (server, port) = try Self.encodingServer()
        defer { server.terminate() }
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let done = Latch()
        let recorder = Recorder { call, _ in if call == .finish || call == .fail { done.open() } }
        let connection = URLConnection(
            request: URLRequest(url: url("http://127.0.0.1:\(port)/bomb")), delegate: recorder,
            startImmediately: false)
        connection?.configuration.contentLimits.maximumRatio = 2_000
        connection?.setDelegateQueue(queue)
        connection?.start()
        try done.wait()
        #expect(recorder.calls == ["response 200", "data", "finish"] && recorder.body.count == 1 << 28)
    }

    @Test(.enabled(if: Stranger.hasNginx, "nginx is not installed"))
    func `UC-20 nginx encodes on the way, in chunks`() throws {
        let directory = try Stranger.Directory()
        try directory.write(Data(Self.text.utf8), to: "page.html")
        let (server, http, _) = try Stranger.nginx(directory: directory.path, http: "gzip on;")
        defer { server.terminate() }
        let recorder = try load(url("http://127.0.0.1:\(http)/page.html"))
        #expect(recorder.response?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
        #expect(recorder.response?.expectedContentLength == -1)
        #expect(recorder.hasBody(Self.text))
    }

    // MARK: Parts

    private static func parts(_ body: String, type: String, end: String = "") throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 200 OK\r\nX-Whole: yes\r\nContent-Language: de\r\nContent-Type: \(type)\r\n\r\n")
            for character in body.utf8 { try peer.send([character]) }
            peer.finish()
            peer.waitForEnd()
        }
    }

    @Test func `UC-22 each part has its own response, the outer one comes first and without data`() throws {
        let body = """
            --b\r
            Content-Type: text/plain\r
            Content-Length: 3\r
            \r
            one\r
            --b\r
            Content-Type: image/png; x=y\r
            \r
            two\r
            --b--\r
            """
        let server = try Self.parts(body, type: "multipart/x-mixed-replace; boundary=b")
        let recorder = try load(server.url())
        #expect(
            recorder.calls == [
                "response 200", "response 200", "data", "response 200", "data", "finish",
            ])
        #expect(
            recorder.responses.map(\.mimeType) == [
                "multipart/x-mixed-replace", "text/plain", "image/png",
            ])
        #expect(recorder.responses.map(\.expectedContentLength) == [-1, 3, -1])
        #expect(recorder.responses.allSatisfy { $0.value(forHTTPHeaderField: "X-Whole") == "yes" })
        // What speaks of the whole's content is none of a part's.
        #expect(
            recorder.responses.map { $0.value(forHTTPHeaderField: "Content-Language") } == ["de", nil, nil])
        // UC-23: nothing is repeated or withdrawn.
        #expect(recorder.hasBody("onetwo"))
    }

    @Test func `UC-23 delivered parts stay, even if the stream breaks off`() throws {
        let server = try Self.parts(
            "--b\r\nContent-Type: a/b\r\n\r\none\r\n--b\r\nContent-Type: c/d\r\n\r\ntw",
            type: "multipart/x-mixed-replace; boundary=\"b\"")
        let recorder = try load(server.url())
        #expect(recorder.responses.map(\.mimeType) == ["multipart/x-mixed-replace", "a/b", "c/d"])
        #expect(recorder.hasBody("onetw") && recorder.calls.last == "finish")
    }

    @Test(arguments: ["multipart/mixed; boundary=b", "multipart/x-mixed-replace", "text/plain; boundary=b"])
    func `UC-22 a body of another type than multipart/x-mixed-replace is not split`(_ type: String) throws {
        let body = "--b\r\n\r\none\r\n--b--\r\n"
        let recorder = try load(Self.parts(body, type: type).url())
        #expect(recorder.calls == ["response 200", "data", "finish"] && recorder.hasBody(body))
    }

    @Test func `a part without a valid header fails the load`() throws {
        let server = try Self.parts("--b\r\nno field\r\n\r\n", type: "multipart/x-mixed-replace; boundary=b")
        #expect(try load(server.url()).calls == ["response 200", "fail -1017"])
    }
}
