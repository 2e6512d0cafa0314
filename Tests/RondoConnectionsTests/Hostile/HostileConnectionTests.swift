import Rondo
import RondoTestSupport
import Testing

/// Servers that leave at the wrong moment or speak out of turn, and redirects that lead nowhere good.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct HostileConnectionTests {
    @Test(arguments: departures)
    func `UC-59 a server that leaves in the middle fails the load`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: outOfTurn)
    func `RFC 9112 9 a server that speaks unasked confuses no request`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: redirects)
    func `UC-34 a redirect that leads nowhere good is not followed`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: followed)
    func `UC-33 a redirect is followed by the letter of the RFCs`(
        location: String, status: Int, expected: String
    ) throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                guard request.target == "/a/b?c" else {
                    try peer.respond(body: "\(request.method) \(request.target)")
                    continue
                }
                let location = location.replacing("HOST", with: request.value("Host") ?? "")
                try peer.respond("\(status) Elsewhere", ["Location: \(location)"], body: "moved")
            }
        }
        #expect(try load(server.url("/a/b?c#d")).text == expected)
    }

    @Test func `UC-32 a server that redirects in a circle is left after sixteen times`() throws {
        let server = try TestServer { peer in
            while true {
                let number = Int(try peer.readRequest().target.dropFirst()) ?? 0
                try peer.respond("302 Found", ["Location: /\((number + 1) % 3)"])
            }
        }
        #expect(try load(server.url("/0")).error?.code == .httpTooManyRedirects)
        #expect(server.requests.count == 17)
    }

    @Test func `RFC 9110 15.4 two Locations are neither joined nor chosen from`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                guard request.target == "/" else {
                    try peer.respond(body: request.target)
                    continue
                }
                try peer.respond("302 Found", ["Location: /one", "Location: /two"])
            }
        }
        #expect(try load(server.url()).calls == ["fail -1010"])
        #expect(server.requests.count == 1)
    }

    @Test func `UC-33 another port is another origin, which gets no credentials`() throws {
        let other = try TestServer { peer in
            let request = try peer.readRequest()
            try peer.respond(
                body: "\(request.value("Authorization") ?? "-") \(request.value("Cookie") ?? "-")")
        }
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("307 There", ["Location: \(other.url())"])
        }
        var request = URLRequest(url: server.url())
        request.setValue("Basic c2VjcmV0", forHTTPHeaderField: "Authorization")
        request.setValue("secret=1", forHTTPHeaderField: "Cookie")
        #expect(try load(request) { $0.configuration.cookieStorage = nil }.text == "- -")
    }
}

private let lost = Behaviour.Outcome.fails(.networkConnectionLost)
private let fine = Behaviour.Outcome.gets(200, "ok")

/// The server's words before it leaves.
private let beginnings: [String] = [
    "", "\r\n", "H", "HTTP/1.1", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nA: b",
    "HTTP/1.1 200 OK\r\nA: b\r\n\r", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 103 Hints\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
]

private let departures: [Behaviour] =
    beginnings.map { Behaviour("closed after \($0.utf8.count) bytes", lost, .closes, $0) }
    + beginnings.map { Behaviour("broken after \($0.utf8.count) bytes", lost, .resets, $0) }
    + [
        Behaviour("closed at once", lost) { peer in peer.close() },
        Behaviour("broken at once", lost) { peer in peer.reset() },
        Behaviour("a body until it is broken off", lost, .resets, "HTTP/1.1 200 OK\r\n\r\nok"),
    ]

private let outOfTurn: [Behaviour] = [
    Behaviour(
        "it closes its side first, and answers whole", fine, .closes,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour("it answers before it has read all of a body", .gets(413, "no"), method: "POST") { peer in
        _ = try peer.readHead()
        try peer.respond("413 Too Large", body: "no")
        peer.waitForEnd()
    },
    Behaviour("it answers before it was asked", fine) { peer in
        try peer.respond(body: "ok")
        _ = try peer.readRequest()
        peer.waitForEnd()
    },
    Behaviour("it sends single bytes", fine, isKept: true) { peer in
        _ = try peer.readRequest()
        for byte in "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".utf8 {
            try peer.send([byte])
        }
        _ = try peer.readRequest()
        try peer.respond(body: "again")
    },
    Behaviour(
        "it says nothing of use after the end", fine, isKept: false, .repeats("evil"),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "407 without a proxy", .gets(407, "ok"),
        "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "417 without an expectation", .gets(417, "ok"), "HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "416 without a range", .gets(416, "ok"),
        "HTTP/1.1 416 No\r\nContent-Range: bytes */9\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "206 without a range", .gets(206, "ok"),
        "HTTP/1.1 206 Part\r\nContent-Range: bytes 7-8/9\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "426 Upgrade Required", .gets(426, "ok"),
        "HTTP/1.1 426 No\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "408 on a fresh connection", .gets(408, "ok"), isKept: false,
        "HTTP/1.1 408 Slow\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "Retry-After of ages", .gets(503, "ok"),
        "HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\nContent-Length: 2\r\n\r\nok"),
]

// MARK: - Redirects

private let nowhere = Behaviour.Outcome.fails(.redirectToNonExistentLocation)
private let notThere = Behaviour.Outcome.fails(.unsupportedURL)

private func to(_ location: String, _ outcome: Behaviour.Outcome) -> Behaviour {
    let name = location.count > 60 ? "\(location.utf8.count) bytes" : location
    return Behaviour(
        "to “\(name)”", outcome, "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 2\r\n\r\nok")
}

private let redirects: [Behaviour] = [
    to("file:///etc/passwd", notThere), to("FILE:/etc/passwd", notThere), to("data:text/plain,ok", notThere),
    to("javascript:alert(1)", notThere), to("ftp://127.0.0.1/x", notThere),
    to("mailto:a@b.example", notThere),
    to("about:blank", notThere), to("ws://127.0.0.1/", notThere), to("view-source:http://a/", notThere),
    to("urn:a:b", notThere), to("gopher://127.0.0.1:25/_HELO", notThere),
    to("", nowhere), to("  ", nowhere), to("http://", nowhere), to("http:///x", nowhere),
    to("http:", nowhere),
    to("http:x", nowhere), to("//", nowhere), to("http://[::1/", nowhere), to("http://a b/", nowhere),
    to("http://127.0.0.1:99999/", nowhere), to("http://127.0.0.1:port/", nowhere),
    to("http://127.0.0.1:-1/", nowhere), to("http://?x", nowhere), to("http://#x", nowhere),
    to("http://127.0.0.1:0/", nowhere), to("http://:80/", nowhere),
    Behaviour("no Location", nowhere, "HTTP/1.1 301 Moved\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "300 is a page", .gets(300, "ok"),
        "HTTP/1.1 300 Many\r\nLocation: /a\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour("304 is none", .gets(304, ""), "HTTP/1.1 304 Same\r\nLocation: /a\r\n\r\n"),
    Behaviour(
        "305 is none", .gets(305, "ok"),
        "HTTP/1.1 305 Proxy\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "306 is none", .gets(306, "ok"), "HTTP/1.1 306 Odd\r\nLocation: /a\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "201 is none", .gets(201, "ok"), "HTTP/1.1 201 Made\r\nLocation: /a\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour("200 is none", fine, "HTTP/1.1 200 OK\r\nLocation: /a\r\nContent-Length: 2\r\n\r\nok"),
    Behaviour(
        "a redirect whose body has no end", .fails(.redirectToNonExistentLocation), .repeats("more"),
        "HTTP/1.1 302 Found\r\n\r\n"),
]

private let followed: [(location: String, status: Int, expected: String)] = [
    ("/x", 301, "GET /x"), ("/x", 302, "GET /x"), ("/x", 303, "GET /x"), ("/x", 307, "GET /x"),
    ("/x", 308, "GET /x"), ("x", 302, "GET /a/x"), ("?x", 302, "GET /a/b?x"), ("../../../x", 302, "GET /x"),
    ("./x/../y", 302, "GET /a/y"), ("/x y", 302, "GET /x%20y"), ("/\u{E9}", 302, "GET /%C3%A9"),
    ("/x%0d%0aEvil:%201", 302, "GET /x%0d%0aEvil:%201"), ("/x#y", 302, "GET /x"), ("/%", 302, "GET /%25"),
    ("//HOST/x", 302, "GET /x"), ("/x?a=<b>&c=\"d\"", 302, "GET /x?a=%3Cb%3E&c=%22d%22"),
    ("/\(String(repeating: "x", count: 60_000))", 302, "GET /\(String(repeating: "x", count: 60_000))"),
]
