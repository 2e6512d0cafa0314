import Rondo
import RondoStreams
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// Idle time, and which time is not. Time passes by a clock that the test holds: the server moves it.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct TimeoutTests {
    private static func request(_ server: TestServer, timeout: TimeInterval = 60) -> URLRequest {
        var request = URLRequest(url: server.url())
        request.timeoutInterval = timeout
        return request
    }

    /// Loads on a loop whose clock is `clock`.
    private static func load(_ request: URLRequest, by clock: ManualClock, recorder: Recorder) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            _ = URLConnection(request: request, delegate: recorder)
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(ended == .finished)
    }

    /// Lets more than the timeout pass, as often as it takes: time that passes before the loop has noted its
    /// last progress does not count.
    private static func advance(_ clock: ManualClock, until recorder: Recorder) {
        while !recorder.isDone {
            clock.advance(by: 60.1)
            sched_yield()
        }
    }

    @Test func `UC-58 a server that sends nothing fails the load with timedOut`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let recorder = Recorder()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            Self.advance(clock, until: recorder)
            peer.waitForEnd()
        }
        try Self.load(Self.request(server), by: clock, recorder: recorder)
        #expect(recorder.calls == ["fail -1001"])
        #expect(recorder.error?.code == .timedOut)
        #expect(recorder.error?.localizedDescription.contains("127.0.0.1") == true)
    }

    @Test func `UC-58 a server that stops in the middle fails the load with timedOut`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let half = Latch()
        let recorder = Recorder { call, _ in if call == .data { half.open() } }
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            try half.wait()
            Self.advance(clock, until: recorder)
            peer.waitForEnd()
        }
        try Self.load(Self.request(server), by: clock, recorder: recorder)
        #expect(recorder.calls == ["response 200", "data", "fail -1001"])
    }

    @Test(
        arguments: [
            ["Content-Encoding: gzip", ""],
            // The first bytes of a gzip stream, from which nothing can be decoded.
            ["Content-Encoding: gzip", "\u{1f}"],
            ["Content-Type: multipart/x-mixed-replace; boundary=b", "--b\r\n\r\nhalf of a par"],
        ])
    func `UC-58 a server that stops in a body that is decoded or divided fails the load with timedOut`(
        fieldAndBody: [String]
    ) throws {
        let clock = ManualClock(advancesAutomatically: false)
        let head = Latch()
        let recorder = Recorder { call, _ in if call == .response { head.open() } }
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\(fieldAndBody[0])\r\n\r\n\(fieldAndBody[1])")
            try head.wait()
            Self.advance(clock, until: recorder)
            peer.waitForEnd()
        }
        try Self.load(Self.request(server), by: clock, recorder: recorder)
        #expect(recorder.calls.last == "fail -1001")
    }

    @Test func `UC-58 every progress restarts the idle time`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let seen = Box(0)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            for count in 1...10 {
                // Longer than the timeout altogether, but never at once.
                clock.advance(by: 50)
                try peer.send("x")
                try waitFor("a piece") { seen.value == count ? () : nil }
            }
            peer.waitForEnd()
        }
        let recorder = Recorder { call, _ in if call == .data { seen.mutate { $0 += 1 } } }
        try Self.load(Self.request(server), by: clock, recorder: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// Loads while a server says its words piece by piece, and lets 25 s pass before each while the loop runs: less than the
    /// timeout, and more than that in all. The next piece comes when the one before has been handled.
    ///
    /// - Parameter silence: Seconds for which the server says nothing in the end: the load ends by that.
    private static func drip(
        _ pieces: [String], to recorder: Recorder, _ target: URL? = nil, thenSilentFor silence: Double? = nil,
        _ configure: @escaping @Sendable (URLConnection, TestServer) -> Void = { _, _ in }
    ) throws {
        let clock = ManualClock(advancesAutomatically: false)
        let (loops, handled) = (Box<RunLoop?>(nil), Box(0))
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            for piece in pieces {
                try loops.value?.waitUntilAsleep()
                clock.advance(by: 25)
                try loops.value?.waitUntilAsleep()
                let before = handled.value
                try peer.send(piece)
                try waitFor("a piece") { handled.value > before ? () : nil }
            }
            if let silence {
                try loops.value?.waitUntilAsleep()
                clock.advance(by: silence)
                try waitFor("the end") { recorder.isDone ? () : nil }
            }
            peer.waitForEnd()
        }
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            loops.value = loop
            var request = Self.request(server)
            if let target { request.url = target }
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            if let connection { configure(connection, server) }
            connection?.start()
            while true {
                let result = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: true)
                guard result == .handledSource else { return result }
                handled.mutate { $0 += 1 }
            }
        }
        #expect(ended == .finished)
    }

    @Test func `UC-58 a head that comes slowly and steadily is progress`() throws {
        let head = Array("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\n").map { String($0) }
        let recorder = Recorder()
        try Self.drip(head + ["ok"], to: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-58 the idle time begins with the last byte, not when the clock is looked at`() throws {
        let recorder = Recorder()
        try Self.drip(["HTTP/1.1 200 OK\r\nA:", "b\r\nContent-"], to: recorder, thenSilentFor: 60.1)
        #expect(recorder.calls == ["fail -1001"])
    }

    @Test func `UC-58 chunk lines and trailers restart the idle time`() throws {
        let rest = Array("2;extension\r\nok\r\n0\r\nTrailer: late\r\n\r\n").map { String($0) }
        let recorder = Recorder()
        try Self.drip(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] + rest, to: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-58 bytes of a proxy that makes no tunnel restart the idle time`() throws {
        let answer = Array("HTTP/1.1 403 Not for you\r\nContent-Length: 0\r\n\r\n").map { String($0) }
        let recorder = Recorder()
        try Self.drip(answer, to: recorder, url("https://host.invalid/")) { connection, server in
            connection.configuration.proxy = .by(
                StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(server.port)))
        }
        #expect(recorder.calls == ["fail -1004"])
    }

    /// Runs elsewhere for longer than the timeout in the middle of a load, which goes on afterwards.
    private static func away(_ elsewhere: @escaping @Sendable (RunLoop, ManualClock) -> Void) throws {
        let clock = ManualClock(advancesAutomatically: false)
        let (server, _, answer) = try lateServer()
        let recorder = Recorder()
        try onLoopThread { loop in
            clock.attach(to: loop)
            _ = URLConnection(request: Self.request(server), delegate: recorder)
            while server.requests.isEmpty {
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            }
            elsewhere(loop, clock)
            // Back in default the answer is still to come, and the timer is due.
            for _ in 0..<10 { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
            answer.open()
            _ = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-58 time in other modes is not counted`() throws {
        try Self.away { loop, clock in
            let timer = Timer(timeInterval: 100, repeats: false) { _ in }
            loop.add(timer, forMode: .tracking)
            clock.advance(by: 200)
            _ = loop.run(in: .tracking, for: 0, returnAfterSourceHandled: false)
        }
    }

    @Test func `UC-58 time in which the loop does not run is not counted`() throws {
        try Self.away { _, clock in clock.advance(by: 200) }
    }

    /// The load looks at bytes that came over TLS meanwhile before it looks at the clock, and loses none of them.
    @Test func `UC-58 time in other modes is not counted over TLS`() throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            import threading
            if "go" not in globals():
                go = threading.Event()
                def listen():
                    sys.stdin.readline()
                    go.set()
                threading.Thread(target=listen, daemon=True).start()
            def serve(tls):
                tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n")
                go.wait()
                tls.sendall(b"after")
                tls.recv(1)
            threading.Thread(target=serve, args=(tls,), daemon=True).start()
            """)
        // One thread tells it, while this one waits.
        nonisolated(unsafe) let stranger = server
        let recorders = (0..<4).map { _ in Recorder() }
        let clock = ManualClock(advancesAutomatically: false)
        try onLoopThread { loop in
            clock.attach(to: loop)
            for recorder in recorders {
                let connection = URLConnection(
                    request: URLRequest(url: url("https://localhost:\(port)/")), delegate: recorder,
                    startImmediately: false)
                connection?.trustTestAuthority()
                connection?.start()
            }
            while !recorders.allSatisfy({ $0.response != nil }) {
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            }
            stranger.tell("go")
            // Timers and sockets are due together when default runs again.
            clock.advance(by: 100)
            _ = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        for recorder in recorders {
            #expect(recorder.calls == ["response 200", "data", "finish"])
            #expect(recorder.text == "after")
        }
        server.terminate()
    }

    @Test func `UC-58 a delegate that takes its time is not timed out for it`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n")
            try peer.send(longText(400_000))
            peer.waitForEnd()
        }
        let recorder = Recorder { call, _ in if call == .response { clock.advance(by: 100) } }
        try Self.load(Self.request(server), by: clock, recorder: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// A mode that is named twice does not make the time pass faster.
    @Test func `UC-58 time that several places run at once counts once`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            clock.advance(by: 50)
            try peer.respond(body: "in time")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            let connection = URLConnection(
                request: Self.request(server), delegate: recorder, startImmediately: false)
            for mode in [RunLoop.Mode.default, .common, .tracking] {
                connection?.schedule(in: loop, forMode: mode)
            }
            connection?.start()
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(ended == .finished)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// Takes minutes to answer a challenge, on another thread.
    private final class Thinking: NSObject, Recording, Sendable {
        /// `@unchecked Sendable`: the delegate hands it on and does not touch it again; what the thread that answers
        /// asks of it is its sender, which any thread may call.
        private struct Held: @unchecked Sendable {
            let challenge: URLAuthenticationChallenge
        }

        let recorder = Recorder()
        private let clock = ManualClock(advancesAutomatically: false)
        private let loops = Box<RunLoop?>(nil)
        private let answer: @Sendable (URLAuthenticationChallenge) -> Void

        init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Void) { self.answer = answer }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            let held = Held(challenge: challenge)
            Thread.detachNewThread { [self] in
                do {
                    if let loop = loops.value { try loop.passTime(by: clock) }
                } catch {
                    Issue.record(error)
                }
                answer(held.challenge)
            }
        }

        /// Loads with this delegate, on a loop whose time passes while it thinks.
        func load(_ request: URLRequest) throws -> RunLoop.RunResult {
            try onLoopThread { [self] loop in
                clock.attach(to: loop)
                loops.value = loop
                _ = URLConnection(request: request, delegate: self)
                return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
            }
        }
    }

    @Test func `UC-58 UC-47 the time that an answer to a challenge takes is not the server's`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""], body: "no")
            peer.waitForEnd()
        }
        let thinking = Thinking { $0.sender?.continueWithoutCredential(for: $0) }
        #expect(try thinking.load(Self.request(server)) == .finished)
        #expect(thinking.recorder.calls == ["response 401", "data", "finish"])
    }

    @Test func `UC-58 UC-72 the time that a load waits for a connection is not the server's`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let loops = Box<RunLoop?>(nil)
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/0", let loop = loops.value { try loop.passTime(by: clock) }
                try peer.respond(body: request.target)
            }
        }
        URLConnection.limits.exceptions["127.0.0.1:\(server.port)"] = 1
        let recorders = [Recorder(), Recorder()]
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            loops.value = loop
            for (number, timeout) in [1e6, 60].enumerated() {
                var request = URLRequest(url: server.url("/\(number)"))
                request.timeoutInterval = timeout
                _ = URLConnection(request: request, delegate: recorders[number])
            }
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(ended == .finished)
        #expect(recorders.map(\.text) == ["/0", "/1"])
    }

    @Test func `UC-58 the time for which the delegate's side takes nothing is not the server's`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let goOn = Latch()
        let server = try TestServer.sending(
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none", until: goOn, then: "two")
        // As a delegate queue does that is behind, and `bytes(for:)`.
        let recorder = Recorder { call, connection in if call == .response { connection.holdBack(true) } }
        let connections = Box<URLConnection?>(nil)
        let thread = LoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            connections.value = URLConnection(request: Self.request(server), delegate: recorder)
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        try waitFor("the response") { recorder.response }
        try thread.loop.passTime(by: clock)
        goOn.open()
        try thread.loop.passTime(by: clock)
        #expect(recorder.calls == ["response 200"] || recorder.text == "one")
        connections.value?.holdBack(false)
        #expect(try thread.value() == .finished)
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.text == "onetwo")
    }

    /// Timers and sockets are due together after something else on the loop that took longer than the timeout.
    @Test func `UC-58 received bytes are handled before the timeout is checked`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let goOn = Latch()
        let sent = Box(0)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            try goOn.wait()
            try peer.send("after")
            sent.mutate { $0 += 1 }
            peer.waitForEnd()
        }
        let recorders = (0..<4).map { _ in Recorder() }
        try onLoopThread { loop in
            clock.attach(to: loop)
            for recorder in recorders {
                _ = URLConnection(request: Self.request(server), delegate: recorder)
            }
            while !recorders.allSatisfy({ $0.response != nil }) {
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            }
            loop.perform(inModes: [.default]) {
                goOn.open()
                do {
                    try waitFor("what the server sends") { sent.value == 4 ? () : nil }
                } catch {
                    Issue.record(error)
                }
                clock.advance(by: 100)
            }
            _ = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        for recorder in recorders { #expect(recorder.calls == ["response 200", "data", "finish"]) }
    }

    @Test func `UC-58 UC-47 the time that an answer in a handshake takes is not the server's`() throws {
        let (server, port) = try OpenSSLPages.start()
        defer { server.terminate() }
        let thinking = Thinking { challenge in
            guard let trust = challenge.protectionSpace.serverTrust else { return }
            challenge.sender?.use(URLCredential(trust: trust), for: challenge)
        }
        var request = URLRequest(url: url("https://localhost:\(port)/"))
        request.timeoutInterval = 60
        #expect(try thinking.load(request) == .finished)
        #expect(thinking.recorder.calls == ["response 200", "data", "finish"])
    }

    /// A request that begins while other descriptors are ready is sent after the callback of the next one.
    @Test func `UC-58 the time in which a request waits for other callbacks is not the server's`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let loops = Box<RunLoop?>(nil)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "first")
            _ = try peer.readRequest()
            // The clock has been looked at by then.
            try loops.value?.waitUntilAsleep()
            try peer.respond(body: "second")
            peer.waitForEnd()
        }
        let request = Self.request(server)
        let recorders = [Recorder(), Recorder()]
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            loops.value = loop
            // Its connection is kept.
            _ = URLConnection(request: request, delegate: recorders[0])
            loop.runOut()
            // Both are found ready by one look.
            let callbacks = Box(0)
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { return .stopped }
            defer { for end in ends { close(end) } }
            for _ in 1...2 {
                let source = RunLoop.Source(fileDescriptor: ends[1], interest: .write) { source, _ in
                    source.invalidate()
                    callbacks.mutate { $0 += 1 }
                    if callbacks.value == 1 {
                        _ = URLConnection(request: request, delegate: recorders[1])
                    } else {
                        clock.advance(by: 61)
                    }
                }
                loop.add(source, forMode: .default)
            }
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(ended == .finished)
        #expect(recorders.map(\.text) == ["first", "second"])
        #expect(server.accepted == 1)
    }

    @Test func `UC-58 the time that storing a response takes is not the server's`() throws {
        let clock = ManualClock(advancesAutomatically: false)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: "kept")
            peer.waitForEnd()
        }
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let recorder = Recorder()
        let thread = LoopThread { loop -> RunLoop.RunResult in
            clock.attach(to: loop)
            let connection = URLConnection(
                request: Self.request(server), delegate: recorder, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            return loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        try cache.began.wait()
        try thread.loop.passTime(by: clock)
        cache.mayGoOn.open()
        #expect(try thread.value() == .finished)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }
}
