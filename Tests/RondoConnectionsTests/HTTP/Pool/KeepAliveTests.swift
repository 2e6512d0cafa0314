import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Connections to servers that serve more than one request, and what becomes of a request on a dead one.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct KeepAliveTests {
    private static func request(_ server: TestServer, _ method: String = "GET", path: String = "/")
        -> URLRequest
    {
        var request = URLRequest(url: server.url(path))
        request.httpMethod = method
        if method == "POST" { request.httpBody = Data("body".utf8) }
        return request
    }

    @Test func `RFC 9112 9.3 two requests use one connection`() throws {
        let server = try TestServer { peer in
            while true { try peer.respond(body: try peer.readRequest().target) }
        }
        #expect(try load(server.url("/one")).text == "/one")
        #expect(try load(server.url("/two")).text == "/two")
        #expect(try load(Self.request(server, "POST", path: "/three")).text == "/three")
        #expect(server.accepted == 1)
        #expect(server.requests.map(\.target) == ["/one", "/two", "/three"])
    }

    @Test func `RFC 9112 9.3 a redirect to the same server uses the same connection`() throws {
        let server = try TestServer { peer in
            while true {
                if try peer.readRequest().target == "/old" {
                    try peer.respond("302 Found", ["Location: /new"], body: "moved")
                } else {
                    try peer.respond(body: "here")
                }
            }
        }
        #expect(try load(server.url("/old")).text == "here")
        #expect(server.accepted == 1)
    }

    @Test func `a connection that one loop uses is for no other, and for the next one afterwards`() throws {
        let (asked, answer) = (Latch(), Latch())
        let server = try TestServer { peer in
            while true {
                let target = try peer.readRequest().target
                if target == "/held" {
                    asked.open()
                    try answer.wait()
                }
                try peer.respond(body: target)
            }
        }
        #expect(try load(server.url("/first")).text == "/first")
        let thread = LoopThread { _ in try? load(server.url("/held")).text }
        try asked.wait()
        // The kept one is in use by that thread's loop: another one, then.
        #expect(server.accepted == 1)
        #expect(try load(server.url("/beside")).text == "/beside")
        #expect(server.accepted == 2)
        answer.open()
        #expect(try thread.value() == "/held")
        #expect(try load(server.url("/after")).text == "/after")
        #expect(server.accepted == 2)
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"])
    func `RFC 9112 9.6 a connection that is to be closed is not kept`(head: String) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("\(head)\r\nContent-Length: 2\r\n\r\nok")
            peer.waitForEnd()
        }
        #expect(try load(server.url()).text == "ok")
        #expect(try load(server.url()).text == "ok")
        #expect(server.accepted == 2)
    }

    @Test func `RFC 9112 9.3 a connection with a response left unread is not kept`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
            peer.waitForEnd()
        }
        for _ in 0..<2 {
            let recorder = Recorder { call, connection in if call == .data { connection.cancel() } }
            try load(server.url(), recorder: recorder)
            #expect(recorder.calls == ["response 200", "data"])
        }
        #expect(server.accepted == 2)
    }

    @Test(arguments: ["GET", "POST"])
    func `RFC 9112 9.5 a kept connection that was closed meanwhile is replaced silently`(method: String)
        throws
    {
        let closed = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "answer \(peer.number)")
            if peer.number == 0 {
                peer.close()
                closed.open()
            } else {
                peer.waitForEnd()
            }
        }
        #expect(try load(Self.request(server, method)).text == "answer 0")
        try closed.wait()
        let second = try load(Self.request(server, method))
        #expect(second.text == "answer 1")
        #expect(second.calls.filter { $0 != "sent" } == ["response 200", "data", "finish"])
        #expect(server.accepted == 2)
    }

    /// The server closes when it has read the second request, without a byte of an answer.
    private static func fickleServer(resets: Bool) throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "answer \(peer.number)")
            _ = try peer.readRequest()
            if resets { peer.reset() } else { peer.close() }
        }
    }

    @Test(arguments: [false, true])
    func `RFC 9110 9.2.2 a GET on a kept connection that turns out dead is sent again, once`(resets: Bool)
        throws
    {
        let server = try Self.fickleServer(resets: resets)
        #expect(try load(server.url("/one")).text == "answer 0")
        let second = try load(server.url("/two"))
        #expect(second.calls == ["response 200", "data", "finish"])
        #expect(second.text == "answer 1")
        #expect(server.accepted == 2)
        #expect(server.requests.map(\.target) == ["/one", "/two", "/two"])
    }

    @Test(arguments: [false, true])
    func `RFC 9110 9.2.2 a POST on a kept connection that turns out dead is not sent again`(resets: Bool)
        throws
    {
        let server = try Self.fickleServer(resets: resets)
        #expect(try load(server.url("/one")).text == "answer 0")
        let second = try load(Self.request(server, "POST", path: "/two"))
        #expect(second.error?.code == .networkConnectionLost)
        #expect(second.error?.localizedDescription.contains("127.0.0.1") == true)
        #expect(second.calls.last == "fail -1005")
        #expect(server.accepted == 1)
        #expect(server.requests.map(\.target) == ["/one", "/two"])
    }

    @Test func `RFC 9110 9.2.2 a GET that fails on a fresh connection is not sent again`() throws {
        let server = try TestServer { peer in _ = try peer.readRequest() }
        let recorder = try load(server.url())
        #expect(recorder.calls == ["fail -1005"])
        #expect(server.accepted == 1)
    }

    @Test func `RFC 9110 9.2.2 after a byte of a response nothing is sent again`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "first")
            _ = try peer.readRequest()
            try peer.send("H")
        }
        #expect(try load(server.url("/one")).text == "first")
        let second = try load(server.url("/two"))
        #expect(second.calls == ["fail -1005"])
        #expect(server.accepted == 1)
    }

    /// The server answers the second request on its first connection by `words`, and all on later ones.
    private static func timingOutServer(_ words: String) throws -> TestServer {
        try TestServer { peer in
            var served = 0
            while true {
                _ = try peer.readRequest()
                served += 1
                if peer.number == 0, served == 2 {
                    try peer.send(words)
                } else {
                    try peer.respond(body: "answer \(peer.number)")
                }
            }
        }
    }

    private static let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n"

    @Test(arguments: ["Connection: close\r\n\r\nlate", "\r\nlate", "\r\n", "\r\nlateHTTP/1.1 200 OK\r\n\r\n"])
    func `RFC 9110 15.5.9 a GET that a kept connection answers by 408 is sent again, once`(rest: String)
        throws
    {
        let server = try Self.timingOutServer(Self.timeout + rest)
        #expect(try load(server.url("/one")).text == "answer 0")
        let second = try load(server.url("/two"))
        #expect(second.calls == ["response 200", "data", "finish"])
        #expect(second.text == "answer 1")
        // What follows on the first connection may be the answer to anything.
        #expect(try load(server.url("/three")).text == "answer 1")
        #expect(server.accepted == 2)
        #expect(server.requests.map(\.target) == ["/one", "/two", "/two", "/three"])
    }

    @Test(arguments: [("POST", ""), ("GET", "HTTP/1.1 103 Early Hints\r\n\r\n")])
    func `RFC 9110 15.5.9 a 408 repeats no request that a lost connection would not repeat`(
        method: String, before: String
    ) throws {
        let server = try Self.timingOutServer(before + Self.timeout + "\r\nlate")
        #expect(try load(server.url("/one")).text == "answer 0")
        let second = try load(Self.request(server, method, path: "/two"))
        #expect(second.response?.statusCode == 408)
        #expect(second.text == "late")
        #expect(server.requests.map(\.target) == ["/one", "/two"])
        // No load uses the connection any more.
        #expect(try load(server.url("/three")).text == "answer 1")
    }

    @Test func `RFC 9110 15.5.9 a 408 on a connection of its own is a response`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send(Self.timeout + "\r\nlate")
            }
        }
        for _ in 0..<2 { #expect(try load(server.url()).calls == ["response 408", "data", "finish"]) }
        #expect(server.accepted == 2)
        #expect(server.requests.count == 2)
    }

    @Test func `RFC 9110 15.5.9 a body from a stream is sent again by its own rules`() throws {
        let server = try Self.timingOutServer(Self.timeout + "\r\nlate")
        #expect(try load(server.url("/one")).text == "answer 0")
        let body = longText(300_000)
        // A stream is no value to hand over: it is made where it is used.
        let recorder = Recorder()
        try onLoopThread { loop in
            var request = Self.request(server, "PUT", path: "/two")
            request.httpBodyStream = InputStream(data: Data(body.utf8))
            _ = URLConnection(request: request, delegate: recorder)
            loop.runOut()
        }
        #expect(recorder.text == "answer 1")
        #expect(server.requests.count == 3)
        #expect(server.requests.last.map { $0.body == Data(body.utf8) } == true)
    }

    @Test func `RFC 9112 9.3 unasked bytes on a kept connection are not taken for an answer`() throws {
        let said = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "answer \(peer.number)")
            if peer.number == 0 {
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
                said.open()
            }
            peer.waitForEnd()
        }
        #expect(try load(server.url("/one")).text == "answer 0")
        try said.wait()
        #expect(try load(server.url("/two")).text == "answer 1")
    }

    @Test
    func `RFC 9112 9.3 bytes after an answer are not taken for the answer to the next request`() throws {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send("\(answer)number\(peer.number == 0 ? "\(answer)forged" : "")")
            }
        }
        for _ in 0..<3 { #expect(try load(server.url()).text == "number") }
        #expect(server.accepted == 2)
    }

    @Test func `connections with different TLS settings are not shared`() throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            global count
            try: count += 1
            except NameError: count = 1
            import threading
            number = count
            def serve(tls):
                try:
                    while True:
                        body = f"connection {number}".encode()
                        head = f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode()
                        tls.sendall(head + body)
                        if not tls.recv(65536): break
                except OSError: pass
            threading.Thread(target=serve, args=(tls,), daemon=True).start()
            """)
        let target = url("https://localhost:\(port)/")
        let first = try load(target) { $0.trustTestAuthority() }
        #expect(first.text == "connection 1")
        let same = try load(target) { $0.trustTestAuthority() }
        #expect(same.text == "connection 1")
        // Trusted with less care: it must neither use the careful one's connection nor leave one to it.
        let careless = try load(target) { $0.configuration.tls.verification = .none }
        #expect(careless.text == "connection 2")
        let distrustful = try load(target)
        #expect(distrustful.error?.code == .serverCertificateHasUnknownRoot)
        server.terminate()
    }

    /// In a process of its own: other tests keep connections in the same pool.
    @Test func `idle connections can be closed`() async {
        await #expect(processExitsWith: .success) {
            let ended = Latch()
            let server = try TestServer { peer in
                _ = try peer.readRequest()
                try peer.respond(body: "ok")
                peer.waitForEnd()
                ended.open()
            }
            try load(server.url())
            precondition(!ended.isOpen, "it was not kept")
            URLConnection.closeIdleConnections()
            try ended.wait()
        }
    }
}
