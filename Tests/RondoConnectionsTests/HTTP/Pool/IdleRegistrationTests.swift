import Rondo
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections
@testable import RondoCore
@testable import RondoStreams

/// A connection between two loads: it stays in its loop for the second one, if that begins while the first one ends.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct IdleRegistrationTests {
    /// The connection to `server` that is kept in the pool, so that it can be looked at.
    ///
    /// `@unchecked Sendable`: looked at on the loop's thread, while that serves it.
    private final class Kept: @unchecked Sendable {
        private let connection: ServerConnection

        convenience init(_ server: TestServer) throws {
            try self.init(ConnectionKey(host: "127.0.0.1", port: Int(server.port), tls: nil)) {
                try load(server.url())
            }
        }

        init(_ key: ConnectionKey, _ load: () throws -> Void) throws {
            try load()
            connection = try #require(ConnectionPool.shared.take(for: key))
            ConnectionPool.shared.add(connection)
        }

        /// Waits until what the server has said is there.
        func waitForBytes() throws {
            try waitFor("the bytes of the server") { connection.channel.hasUnreadBytes ? () : nil }
        }

        /// In how many places it is scheduled, and whether that is because it stays.
        var state: String {
            "\(connection.channel.registration.modes.count) \(connection.isRegisteredIdle ? "stays" : "-")"
        }
    }

    /// Answers until the client goes.
    private static func server() throws -> TestServer {
        try TestServer.answering { _ in "ok" }
    }

    /// A load that is `next` of another one: noted are the states of the connection.
    private static func begin(
        _ server: TestServer, _ kept: Kept, _ log: EventLog,
        onFinish next: @escaping @Sendable () -> Void = {}
    ) {
        let recorder = Recorder { call, _ in
            switch call {
            case .response: log.note("response: \(kept.state)")
            case .finish:
                log.note("finish: \(kept.state)")
                next()
            case .fail: log.note("fail")
            default: break
            }
        }
        _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
    }

    /// So many loads, each of which begins when the one before it ends. Noted are the states of the connection then.
    private static func begin(
        _ count: Int, _ kept: Kept, _ log: EventLog,
        _ make: @escaping @Sendable (Recorder) -> URLConnection?
    ) {
        let recorder = Recorder { call, _ in
            if call == .fail { log.note("fail") }
            guard call == .finish else { return }
            log.note("finish: \(kept.state)")
            if count > 1 { begin(count - 1, kept, log, make) }
        }
        make(recorder)?.start()
    }

    @Test func `an idle connection stays registered for the next load, and is unregistered after the last`()
        throws
    {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) { Self.begin(server, kept, log) { Self.begin(server, kept, log) } }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        let one = ["response: 1 -", "finish: 1 stays"]
        #expect(log.entries == one + one + one + ["end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test
    func
        `a connection does not stay registered if the run returns after each source, or an observer watches the loop`()
        throws
    {
        for isObserved in [false, true] {
            let (server, log) = (try Self.server(), EventLog())
            let kept = try Kept(server)
            try onLoopThread { loop in
                Self.begin(server, kept, log) { Self.begin(server, kept, log) }
                if isObserved {
                    let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in }
                    loop.add(observer, forMode: .default)
                    loop.runOut()
                } else {
                    loop.run { log.entries.count == 4 }
                }
            }
            #expect(log.entries == ["response: 1 -", "finish: 0 -", "response: 1 -", "finish: 0 -"])
            #expect(server.accepted == 1)
        }
    }

    @Test func `a registered connection is unregistered in a nested run of the loop`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let second = Recorder()
        second.answerWillSend { request, _, _ in
            log.note("asked: \(kept.state)")
            _ = RunLoop.current.run(in: .default, for: 0, returnAfterSourceHandled: false)
            log.note("run: \(kept.state)")
            return request
        }
        let result = try onLoopThread { loop in
            // Without a path: so the delegate is asked, in the first turn.
            Self.begin(server, kept, log) {
                _ = URLConnection(request: URLRequest(url: server.url("")), delegate: second)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays", "asked: 1 stays", "run: 0 -"])
        #expect(second.text == "ok")
        #expect(server.accepted == 1)
    }

    @Test
    func
        `a registered connection is unregistered if the load that was begun is cancelled, and the mode is empty then`()
        throws
    {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                let second = URLConnection(request: URLRequest(url: server.url()), delegate: nil)
                // In the next turn, when the first load is over.
                loop.perform { second?.cancel() }
            }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays", "end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test func `a registered connection is unregistered before the run returns`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        try onLoopThread { loop in
            Self.begin(server, kept, log) {
                Self.begin(server, kept, log)
                loop.stop()
            }
            #expect(loop.runOut() == .stopped)
            log.note("stopped: \(kept.state)")
            loop.runOut()
        }
        #expect(
            log.entries == [
                "response: 1 -", "finish: 1 stays", "stopped: 0 -", "response: 1 -", "finish: 1 stays",
            ])
        #expect(server.accepted == 1)
    }

    @Test func `a load of another thread may take a connection that is registered as idle`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                let elsewhere = Recorder { call, _ in
                    if call == .response { log.note("elsewhere: \(kept.state)") }
                }
                do { try load(server.url(), recorder: elsewhere) } catch { Issue.record(error) }
                log.note("\(elsewhere.text): \(kept.state)")
                Self.begin(server, kept, log)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(
            log.entries == [
                "response: 1 -", "finish: 1 stays", "elsewhere: 1 -", "ok: 0 -", "response: 1 -",
                "finish: 1 stays",
            ])
        #expect(server.accepted == 1)
    }

    /// In a process of its own: other tests keep connections in the same pool.
    @Test func `a registered connection can be closed`() async {
        await #expect(processExitsWith: .success) {
            let (server, log) = (try Self.server(), EventLog())
            let kept = try Kept(server)
            let result = try onLoopThread { loop in
                Self.begin(server, kept, log) {
                    URLConnection.closeIdleConnections()
                    let second = Recorder { call, _ in if call == .finish { log.note("second") } }
                    _ = URLConnection(request: URLRequest(url: server.url()), delegate: second)
                }
                return loop.runOut()
            }
            precondition(result == .finished)
            precondition(log.entries == ["response: 1 -", "finish: 1 stays", "second"], "\(log.entries)")
            precondition(server.accepted == 2)
        }
    }

    /// Closes what is kept when a loop is woken.
    private struct Closing: RunLoop.Instrument {
        let log: EventLog

        func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
            guard event.kind == .wakeUp else { return }
            log.note("woken")
            URLConnection.closeIdleConnections()
        }
    }

    /// The connection's end empties the loop's mode, which wakes the loop. In a process of its own, as above.
    @Test func `an instrument that is told that an idle connection is unregistered may close it`() async {
        await #expect(processExitsWith: .success) {
            let (server, log) = (try Self.server(), EventLog())
            let kept = try Kept(server)
            let result = try onLoopThread { loop in
                Self.begin(server, kept, log) {
                    let second = URLConnection(request: URLRequest(url: server.url()), delegate: nil)
                    loop.perform {
                        second?.cancel()
                        RunLoop.instrument = Closing(log: log)
                    }
                }
                return loop.runOut()
            }
            precondition(result == .finished)
            precondition(
                log.entries.prefix(3) == ["response: 1 -", "finish: 1 stays", "woken"], "\(log.entries)")
            precondition(server.accepted == 1)
        }
    }

    @Test func `an idle connection stays registered in the common modes`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            loop.addCommonMode(.work)
            Self.begin(3, kept, log) { recorder in
                let connection = URLConnection(
                    request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                connection?.schedule(in: loop, forMode: .common)
                return connection
            }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut(.work)
        }
        #expect(result == .finished)
        #expect(
            log.entries == ["finish: 1 stays", "finish: 1 stays", "finish: 1 stays", "end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test func `an idle connection over TLS stays registered`() throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            try: number += 1
            except NameError: number = 1
            try:
                while True:
                    tls.sendall(f"HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\n\\r\\n{number}".encode())
                    if not tls.recv(65536): break
            except OSError: pass
            """)
        defer { server.terminate() }
        let target = url("https://localhost:\(port)/")
        var tls = TLSSettings()
        tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        let (log, last) = (EventLog(), Box(Recorder()))
        let kept = try Kept(ConnectionKey(host: "localhost", port: Int(port), tls: tls)) {
            try load(target) { $0.trustTestAuthority() }
        }
        let result = try onLoopThread { loop in
            Self.begin(3, kept, log) { recorder in
                last.value = recorder
                let connection = URLConnection(
                    request: URLRequest(url: target), delegate: recorder, startImmediately: false)
                connection?.trustTestAuthority()
                return connection
            }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["finish: 1 stays", "finish: 1 stays", "finish: 1 stays", "end: 0 -"])
        #expect(last.value.text == "1")
        // Which leads to what begins the next load, and so to itself.
        last.value = Recorder()
    }

    /// One with a name has a source of its own, where no other load waits.
    @Test func `an idle connection is unregistered for a load with a name, which uses it`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(4, kept, log) { recorder in
                let connection = URLConnection(
                    request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                // The first two.
                if log.count(of: "finish: 1 stays") < 2 { connection?.label = "named" }
                loop.perform { log.note("block: \(kept.state)") }
                return connection
            }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        let one = ["block: 0 -", "finish: 1 stays"]
        #expect(log.entries == one + one + one + ["block: 1 stays", "finish: 1 stays", "end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test func `an idle connection of an embedded mode is unregistered before the turn is over`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        try onLoopThread { loop in
            guard let embedding = try? loop.embed(mode: .work) else { return }
            defer { embedding.invalidate() }
            Self.begin(3, kept, log) { recorder in
                let connection = URLConnection(
                    request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                connection?.schedule(in: loop, forMode: .work)
                return connection
            }
            while log.entries.count < 3 {
                var request = pollfd(fd: embedding.fileDescriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&request, 1, 60_000) > 0 else { return }
                embedding.turn()
                #expect(!kept.state.contains("stays"))
            }
            log.note("end: \(kept.state)")
        }
        #expect(log.entries.last == "end: 0 -")
        #expect(log.entries.count == 4 && server.accepted == 1)
    }

    /// In a process of its own, whose limits are not other tests'.
    @Test func `a connection is closed if none may be kept`() async {
        await #expect(processExitsWith: .success) {
            let (server, log) = (try Self.server(), EventLog())
            let kept = try Kept(server)
            URLConnection.limits.idleConnectionsPerServer = 0
            let result = try onLoopThread { loop in
                Self.begin(3, kept, log) { recorder in
                    URLConnection(
                        request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                }
                return loop.runOut()
            }
            precondition(result == .finished)
            precondition(log.entries.count == 3 && !log.entries.contains("fail"), "\(log.entries)")
            // The one that was kept goes when the limit is set.
            precondition(server.accepted == 4, "\(server.accepted)")
        }
    }

    @Test func `an idle connection is unregistered at once if the load is not over with its response`() throws
    {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: "ok")
            }
        }
        let (kept, recorder) = (try Kept(server), Recorder())
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let state = Box("")
        let result = try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url("/stored")), delegate: recorder, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            let elsewhere = LoopThread { _ in
                do { try cache.began.wait() } catch { Issue.record(error) }
                loop.perform {
                    state.value = "\(recorder.calls.last ?? ""): \(kept.state)"
                    cache.mayGoOn.open()
                }
            }
            defer { #expect(throws: Never.self) { try elsewhere.value() } }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(state.value == "data: 0 -")
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(server.accepted == 1)
    }

    /// The run inside cannot hear of a connection whose callback is further out.
    @Test func `a load in a run inside the last callback takes another connection`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let inner = Recorder()
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: inner)
                loop.run { inner.isDone }
                log.note("inside: \(kept.state)")
                Self.begin(server, kept, log)
            }
            defer { log.note("end: \(kept.state)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(inner.text == "ok")
        #expect(log.entries.prefix(3) == ["response: 1 -", "finish: 1 stays", "inside: 1 stays"])
        #expect(log.entries.last == "end: 0 -")
        #expect(server.accepted == 2)
    }

    /// It is looked at before it is used again, wherever it is.
    @Test(arguments: ["GET", "POST"], ["", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
    func `an idle connection that its server has closed, or sent bytes on, is not used`(
        method: String, words: String
    ) throws {
        let (maySpeak, hasSpoken) = (Latch(), Latch())
        let server = try TestServer { peer in
            let isFirst = peer.number == 0
            _ = try peer.readRequest()
            try peer.respond(body: "first")
            if isFirst {
                _ = try peer.readRequest()
                try peer.respond(body: "second")
                try maySpeak.wait()
                try peer.send(words)
                if words.isEmpty { peer.finish() }
                hasSpoken.open()
            }
            peer.waitForEnd()
        }
        let log = EventLog()
        let kept = try Kept(server)
        let next = Recorder()
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                maySpeak.open()
                #expect(throws: Never.self) {
                    try hasSpoken.wait()
                    try kept.waitForBytes()
                }
                var request = URLRequest(url: server.url())
                request.httpMethod = method
                _ = URLConnection(request: request, delegate: next)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays"])
        #expect(next.calls == ["response 200", "data", "finish"])
        #expect(next.text == "first")
        #expect(server.accepted == 2)
        #expect(server.requests.map(\.method) == ["GET", "GET", method])
    }
}
