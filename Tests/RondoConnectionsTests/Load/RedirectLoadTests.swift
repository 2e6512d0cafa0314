import Rondo
import RondoTestSupport
import Testing

/// Redirects and canonical requests as a delegate sees them; which request a redirect makes is tested on
/// values.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct RedirectLoadTests {
    /// Answers the targets that are named with a redirect there, `/loop…` with one to the next number, and
    /// everything else with its own target.
    private static func server(_ redirects: [String: (String, String)] = [:]) throws -> TestServer {
        try TestServer { peer in
            while true {
                let target = try peer.readRequest().target
                if let (status, location) = redirects[target] {
                    try peer.respond(status, ["Location: \(location)"], body: "moved from \(target)")
                } else if target.hasPrefix("/loop"), let number = Int(target.dropFirst(5)) {
                    try peer.respond("302 Found", ["Location: /loop\(number + 1)"])
                } else {
                    try peer.respond(body: target)
                }
            }
        }
    }

    @Test func `UC-24 a followed redirect yields willSendRequest and no response of its own`() throws {
        let server = try Self.server(["/old": ("302 Found", "/new")])
        let recorder = try load(server.url("/old"))
        #expect(recorder.calls == ["willSend 302 \(server.url("/new"))", "response 200", "data", "finish"])
        #expect(recorder.text == "/new")
        #expect(recorder.response?.url == server.url("/new"))
    }

    @Test func `UC-33 RFC 3986 2_1 bytes of a Location that are not UTF-8 are requested as they are`() throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /caf"
            try peer.send(Array(head.utf8) + [0xE9] + Array("\r\n\r\n".utf8))
            _ = try peer.readRequest()
            try peer.respond(body: "there")
        }
        #expect(try load(server.url()).text == "there")
        #expect(server.requests.map(\.target) == ["/", "/caf%E9"])
    }

    @Test func `UC-28 willSendRequest gets the new request and the redirect response`() throws {
        let server = try Self.server(["/old": ("301 Moved", "sub/new?a=b")])
        let recorder = Recorder()
        let seen = Box<[String]>([])
        recorder.answerWillSend { request, response, connection in
            let response = response as? HTTPURLResponse
            seen.value = [
                request.url?.absoluteString ?? "", response?.url?.absoluteString ?? "",
                response?.value(forHTTPHeaderField: "Location") ?? "",
                connection.currentRequest.url?.absoluteString ?? "",
            ]
            return request
        }
        try load(server.url("/old"), recorder: recorder)
        let (old, new) = (server.url("/old").absoluteString, server.url("/sub/new?a=b").absoluteString)
        #expect(seen.value == [new, old, "sub/new?a=b", old])
        #expect(recorder.text == "/sub/new?a=b")
    }

    @Test func `UC-28 the request that willSend returns replaces the redirect's`() throws {
        let server = try Self.server(["/old": ("302 Found", "/new")])
        let recorder = Recorder()
        recorder.answerWillSend { request, _, _ in
            var other = request
            other.url = server.url("/other")
            other.setValue("yes", forHTTPHeaderField: "X-Changed")
            return other
        }
        try load(server.url("/old"), recorder: recorder)
        #expect(recorder.text == "/other")
        #expect(server.requests.map(\.target) == ["/old", "/other"])
        #expect(server.requests.last?.value("X-Changed") == "yes")
    }

    @Test func `UC-28 without the method every redirect and canonicalisation is allowed`() throws {
        let server = try Self.server(["/": ("302 Found", "/new")])
        let count = Box(0)
        try onLoopThread { loop in
            _ = URLConnection(
                request: URLRequest(url: url("http://127.0.0.1:\(server.port)")), delegate: ByteCounter(count)
            )
            loop.runOut()
        }
        #expect(count.value == "/new".utf8.count)
    }

    @Test func `UC-29 a canonicalisation asks with a nil response before anything is sent`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        let accepted = Box<Int?>(nil)
        recorder.answerWillSend { request, response, _ in
            if response == nil { accepted.value = server.accepted }
            return request
        }
        try load(url("HTTP://127.0.0.1:\(server.port)"), recorder: recorder)
        #expect(
            recorder.calls == ["willSend canonical \(server.url("/"))", "response 200", "data", "finish"])
        #expect(accepted.value == 0)
        // Nothing rewritten, no call.
        let plain = try load(server.url("/x"))
        #expect(plain.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-29 nil for a canonical request fails the load as cancelled`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        recorder.answerWillSend { _, _, _ in nil }
        try load(url("http://127.0.0.1:\(server.port)"), recorder: recorder)
        #expect(recorder.calls == ["willSend canonical \(server.url("/"))", "fail -999"])
        #expect(server.accepted == 0)
    }

    @Test(arguments: [0, 300_000])
    func `UC-30 nil refuses the redirect, whose own response and body are delivered`(length: Int) throws {
        let body = longText(length)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: /new"], body: body)
            peer.waitForEnd()
        }
        let recorder = Recorder()
        recorder.answerWillSend { _, _, _ in nil }
        try load(server.url("/old"), recorder: recorder)
        let data = length > 0 ? ["data"] : []
        #expect(
            recorder.calls == ["willSend 302 \(server.url("/new"))", "response 302"] + data + ["finish"])
        #expect(recorder.hasBody(body))
        #expect(recorder.response?.url == server.url("/old"))
        #expect(server.requests.count == 1)
    }

    /// Reading stops for the question, and goes on when the call has returned.
    @Test(arguments: [4, 300_000])
    func `UC-30 the body of a refused redirect may come after the call, and the connection is kept`(
        length: Int
    ) throws {
        let body = longText(length)
        let hasReturned = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: \(length)\r\n\r\n")
            try hasReturned.wait()
            try peer.send(body)
            while true { try peer.respond(body: try peer.readRequest().target) }
        }
        let recorder = Recorder()
        recorder.answerWillSend { _, _, _ in
            RunLoop.currentLoop().perform { hasReturned.open() }
            return nil
        }
        try load(server.url("/old"), recorder: recorder)
        #expect(recorder.calls == ["willSend 302 \(server.url("/new"))", "response 302", "data", "finish"])
        #expect(recorder.hasBody(body))
        #expect(try load(server.url("/next")).text == "/next")
        #expect(server.accepted == 1)
    }

    @Test(arguments: [false, true])
    func `UC-31 cancel inside willSendRequest ends redirect and connection, on a loop or a queue`(
        isOnQueue: Bool
    ) throws {
        let server = try Self.server(["/old": ("302 Found", "/new")])
        let recorder = Recorder()
        recorder.answerWillSend { request, _, connection in
            connection.cancel()
            return request
        }
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url("/old")), delegate: recorder)
            if isOnQueue { connection?.setDelegateQueue(OperationQueue()) }
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["willSend 302 \(server.url("/new"))"])
        #expect(server.requests.count == 1)
    }

    @Test func `UC-32 sixteen redirects are followed`() throws {
        let server = try Self.server(["/loop16": ("302 Found", "/end")])
        // From 1 to 16 there are 15, and one more to the end.
        let recorder = try load(server.url("/loop1"))
        #expect(recorder.calls.count { $0.hasPrefix("willSend") } == 16)
        #expect(recorder.text == "/end")
    }

    @Test func `UC-32 more than sixteen redirects fail`() throws {
        let server = try Self.server()
        let recorder = try load(server.url("/loop1"))
        #expect(recorder.calls.count { $0.hasPrefix("willSend") } == 16)
        #expect(recorder.error?.code == .httpTooManyRedirects)
        #expect(recorder.calls.last == "fail -1007")
        #expect(server.requests.count == 17)
    }

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"),
        (308, "POST", "POST"), (302, "HEAD", "HEAD"), (303, "HEAD", "HEAD"), (302, "PUT", "PUT"),
    ])
    func `UC-33 status and method of a redirected request decide the next method`(
        status: Int, method: String, expected: String
    ) throws {
        let server = try Self.server(["/old": ("\(status) Moved", "/new")])
        var request = URLRequest(url: server.url("/old"))
        request.httpMethod = method
        if method != "HEAD" { request.httpBody = Data("the body".utf8) }
        // To HEAD the server above would send a body, which is no HTTP.
        let bodiless = try TestServer { peer in
            while true {
                let isOld = try peer.readRequest().target == "/old"
                try peer.send(
                    isOld
                        ? "HTTP/1.1 \(status) Moved\r\nLocation: /new\r\nContent-Length: 5\r\n\r\n"
                        : "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            }
        }
        if method == "HEAD" { request.url = bodiless.url("/old") }
        let recorder = try load(request)
        #expect(recorder.calls.last == "finish")
        let requests = method == "HEAD" ? bodiless.requests : server.requests
        #expect(requests.map(\.method) == [method, expected])
        let keepsBody = expected == method && method != "HEAD"
        #expect(
            requests.last.map { String(decoding: $0.body, as: UTF8.self) } == (keepsBody ? "the body" : ""))
        if !keepsBody { #expect(requests.last?.value("Content-Length") == nil) }
    }

    @Test func `UC-33 credentials and cookies do not go to another origin`() throws {
        let other = try Self.server()
        let server = try Self.server([
            "/here": ("302 Found", "/there"), "/away": ("302 Found", other.url("/x").absoluteString),
        ])
        for path in ["/here", "/away"] {
            var request = URLRequest(url: server.url(path))
            request.setValue("Basic c2VjcmV0", forHTTPHeaderField: "Authorization")
            request.setValue("a=b", forHTTPHeaderField: "Cookie")
            request.setValue("kept", forHTTPHeaderField: "X-Mine")
            #expect(try load(request).calls.last == "finish")
        }
        let same = server.requests.first { $0.target == "/there" }
        #expect(same?.value("Authorization") == "Basic c2VjcmV0")
        #expect(same?.value("Cookie") == "a=b")
        let away = other.requests.first
        #expect(away?.target == "/x")
        #expect(away?.value("Authorization") == nil)
        #expect(away?.value("Cookie") == nil)
        #expect(away?.value("X-Mine") == "kept")
        #expect(away?.value("Host") == "127.0.0.1:\(other.port)")
    }

    @Test func `UC-34 a redirect without usable Location fails`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", [], body: "nowhere")
            peer.waitForEnd()
        }
        let recorder = try load(server.url())
        #expect(recorder.calls == ["fail -1010"])
        #expect(recorder.error?.code == .redirectToNonExistentLocation)
        #expect(recorder.error?.localizedDescription.contains("127.0.0.1") == true)
    }

    @Test(arguments: [
        (["Location: /a", "Location: /b"], "fail -1010"), (["Location: /a", "location: /a"], "finish"),
        (["Location: /a", "Location:"], "fail -1010"), (["Location: /a, /b"], "finish"),
        (["Location: http://127.0.0.1:99999999999999999999/"], "fail -1010"),
        (["Location: //127.0.0.1:65616/"], "fail -1010"),
    ])
    func `UC-34 two different Locations, or a port that does not exist, are no usable Location`(
        fields: [String], last: String
    ) throws {
        let server = try TestServer { peer in
            while true {
                let isFirst = try peer.readRequest().target == "/"
                try peer.respond(isFirst ? "302 Found" : "200 OK", isFirst ? fields : [], body: "x")
            }
        }
        #expect(try load(server.url()).calls.last == last)
        #expect(server.requests.count == (last == "finish" ? 2 : 1))
    }

    @Test(arguments: [
        "http://127.0.0.1:99999999999999999999/", "HTTP://127.0.0.1:65536", "https://[::1]:4294967739/",
    ])
    func `UC-59 a port that does not exist is a bad URL, for a redirect of the delegate's as well`(
        text: String
    ) throws {
        #expect(URLConnection.canHandle(URLRequest(url: url(text))))
        let recorder = try load(url(text))
        #expect(recorder.calls == ["fail -1000"])
        #expect(recorder.error?.failingURL == url(text))
        let server = try Self.server(["/old": ("302 Found", "/new")])
        let elsewhere = Recorder()
        elsewhere.answerWillSend { _, response, _ in response == nil ? nil : URLRequest(url: url(text)) }
        try load(server.url("/old"), recorder: elsewhere)
        #expect(elsewhere.calls.last == "fail -1000")
    }

    @Test func `UC-28 a redirect to another scheme is not followed`() throws {
        let server = try Self.server(["/old": ("302 Found", "file:///etc/passwd")])
        let recorder = try load(server.url("/old"))
        #expect(recorder.calls == ["fail -1002"])
    }
}
