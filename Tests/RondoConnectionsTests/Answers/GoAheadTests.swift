import Rondo
import RondoTestSupport
import RondoTesting
import Testing

/// Bodies that wait for the server's go-ahead (rule UC-42).
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct GoAheadTests {
    private static func request(_ url: URL, _ stream: Foundation.InputStream) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBodyStream = stream
        request.setValue("100-continue", forHTTPHeaderField: "Expect")
        return request
    }

    private static func run(
        _ url: URL, _ delegate: any URLConnectionDelegate & Sendable, goAheadTimeout: Double = 60,
        body: String = "body"
    ) throws {
        try onLoopThread { loop in
            let request = Self.request(url, InputStream(data: Data(body.utf8)))
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            connection?.configuration.goAheadTimeout = goAheadTimeout
            connection?.start()
            loop.runOut()
        }
    }

    /// Lets a client send its body, and answers with the body.
    private static func goAhead(_ peer: TestPeer, _ head: TestRequest) throws {
        try peer.send("HTTP/1.1 100 Continue\r\n\r\n")
        let body = try peer.readBody(of: head)
        try peer.respond(body: String(decoding: body, as: UTF8.self))
        peer.waitForEnd()
    }

    @Test func `UC-42 the body waits for the go-ahead`() throws {
        let server = try TestServer { peer in
            let head = try peer.readHead()
            #expect(head.value("Expect") == "100-continue")
            #expect(!peer.hasUnread)
            try peer.send("HTTP/1.1 102 Processing\r\n\r\n")
            #expect(!peer.hasUnread)
            try Self.goAhead(peer, head)
        }
        let recorder = Recorder()
        try Self.run(server.url(), recorder)
        #expect(recorder.text == "body")
    }

    @Test func `UC-42 a body in memory waits as well, and an empty one does not`() throws {
        let server = try TestServer { peer in
            while true {
                let head = try peer.readHead()
                if head.value("Content-Length") != "0" { try peer.send("HTTP/1.1 100 Continue\r\n\r\n") }
                try peer.respond(body: String(try peer.readBody(of: head).count))
            }
        }
        for (body, expected) in [(Data("12345".utf8), "5"), (Data(), "0")] {
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.httpBody = body
            request.setValue("100-continue", forHTTPHeaderField: "Expect")
            #expect(try load(request) { $0.configuration.goAheadTimeout = 60 }.text == expected)
        }
    }

    @Test func `UC-42 without a go-ahead the body is sent after a bounded time`() throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            try peer.respond(body: String(decoding: request.body, as: UTF8.self))
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try Self.run(server.url(), recorder, goAheadTimeout: 0.01)
        #expect(recorder.text == "body")
    }

    @Test func `UC-42 a pass asks a stream without bytes once when no go-ahead has come in time`() throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            try peer.respond(body: String(decoding: request.body, as: UTF8.self))
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let asked = try onLoopThread { loop in
            let stream = LateStream([nil, nil, Array("body".utf8)])
            let connection = URLConnection(
                request: Self.request(server.url(), stream), delegate: recorder, startImmediately: false)
            connection?.configuration.goAheadTimeout = 0.01
            connection?.start()
            while stream.emptyAnswers == 0, loop.run(mode: .default, before: .distantFuture) {}
            let asked = stream.emptyAnswers
            loop.runOut()
            return asked
        }
        #expect(asked == 1)
        #expect(recorder.text == "body")
    }

    @Test func `UC-42 an early refusal costs no body bytes`() throws {
        let bytes = Box(0)
        let server = try TestServer { peer in
            _ = try peer.readHead()
            try peer.respond("403 Forbidden", body: "no")
            // Until the client closes: a connection on which a body is owed cannot be used again.
            while let data = try? peer.readBytes(1) { bytes.mutate { $0 += data.count } }
        }
        let recorder = Recorder()
        try Self.run(server.url(), recorder)
        #expect(recorder.calls == ["response 403", "data", "finish"])
        #expect(bytes.value == 0)
    }

    @Test func `UC-42 a redirect before the go-ahead needs no new stream`() throws {
        let server = try TestServer { peer in
            let head = try peer.readHead()
            if head.target == "/" {
                try peer.respond("307 Temporary Redirect", ["Location: /there"])
                return peer.waitForEnd()
            }
            try Self.goAhead(peer, head)
        }
        let uploader = Uploader { nil }
        try Self.run(server.url(), uploader)
        #expect(uploader.recorder.text == "body")
        #expect(uploader.asked.value == 0)
    }

    @Test func `UC-42 a connection lost before the go-ahead is made again, once`() throws {
        let server = try TestServer { peer in
            let head = try peer.readHead()
            if peer.number == 0 { return peer.reset() }
            try Self.goAhead(peer, head)
        }
        let uploader = Uploader { nil }
        try Self.run(server.url(), uploader)
        #expect(uploader.recorder.text == "body")
        #expect(server.accepted == 2)
        let deaf = try TestServer { peer in
            _ = try peer.readHead()
            peer.reset()
        }
        let recorder = Recorder()
        try Self.run(deaf.url(), recorder)
        #expect(recorder.calls == ["fail -1005"])
        #expect(deaf.accepted == 2)
    }

    /// Nothing of the request has gone out, and so the server waits for no body.
    @Test func `UC-42 a connection that could not be secured is not made again for a body that waits`() throws
    {
        let server = try TestServer { peer in _ = try peer.readBytes(1) }
        let recorder = Recorder()
        try Self.run(url("https://127.0.0.1:\(server.port)/"), recorder)
        #expect(recorder.calls == ["fail -1200"])
        #expect(server.accepted == 1)
    }

    /// The timer of one loop ends the wait; the other loop has one as well.
    @Test func `UC-42 UC-16 a body that is sent without a go-ahead leaves no timer in any loop`() throws {
        let (headCame, isStarted) = (Latch(), Latch())
        let server = try TestServer { peer in
            let head = try peer.readHead()
            headCame.open()
            try peer.respond(body: String(decoding: try peer.readBody(of: head), as: UTF8.self))
            peer.waitForEnd()
        }
        let other = LoopThread { loop -> Result<RunLoop.RunResult, any Error> in
            Result {
                try isStarted.wait()
                return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
            }
        }
        let (second, recorder) = (try other.loop, Recorder())
        try onLoopThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            var request = Self.request(server.url(), InputStream(data: Data("body".utf8)))
            request.timeoutInterval = 1e6
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            connection?.configuration.goAheadTimeout = 60
            for loop in [loop, second] { connection?.schedule(in: loop, forMode: .default) }
            connection?.start()
            isStarted.open()
            while !headCame.isOpen { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
            clock.advance(by: 1000)
            loop.runOut()
        }
        #expect(recorder.text == "body")
        // Its mode is empty.
        #expect(try other.value().get() == .finished)
    }

    @Test func `RFC 9110 15.5.18 a server that knows no go-ahead is asked without`() throws {
        let server = try TestServer { peer in
            let head = try peer.readHead()
            if head.value("Expect") != nil {
                try peer.respond("417 Expectation Failed")
                return peer.waitForEnd()
            }
            try peer.respond(body: String(decoding: try peer.readBody(of: head), as: UTF8.self))
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try Self.run(server.url(), recorder)
        #expect(recorder.calls.filter { $0 != "sent" } == ["response 200", "data", "finish"])
        #expect(recorder.text == "body")
    }

    @Test func `RFC 9110 15.5.18 a server that says so after the body has been sent is asked without, too`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("Expect") == nil {
                    try peer.respond(body: String(decoding: request.body, as: UTF8.self))
                } else {
                    try peer.respond("417 Expectation Failed")
                }
            }
        }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
        request.setValue("100-continue", forHTTPHeaderField: "Expect")
        #expect(try load(request) { $0.configuration.goAheadTimeout = 0 }.text == "body")
        #expect(server.requests.map { $0.value("Expect") } == ["100-continue", nil])
    }

    /// The settings' fields are sent with each request of a load.
    @Test func `RFC 9110 15.5.18 after a 417 the settings' Expect is not sent either`() throws {
        let expectations = EventLog()
        let server = try TestServer { peer in
            while true {
                let head = try peer.readHead()
                expectations.note(head.value("Expect") ?? "none")
                guard head.value("Expect") == nil else {
                    try peer.respond("417 Expectation Failed")
                    return peer.waitForEnd()
                }
                try peer.respond(body: String(decoding: try peer.readBody(of: head), as: UTF8.self))
            }
        }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
        let recorder = try load(request) {
            $0.configuration.goAheadTimeout = 60
            $0.configuration.additionalFields = [.init(name: "Expect", value: "100-continue")]
        }
        #expect(recorder.text == "body")
        #expect(expectations.entries == ["100-continue", "none"])
    }
}
