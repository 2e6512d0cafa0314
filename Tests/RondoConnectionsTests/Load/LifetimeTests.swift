import Rondo
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// Creation, cancelling, and what is kept alive until when.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct LifetimeTests {
    private static func server(_ body: String = "body") throws -> TestServer {
        try TestServer.answering { _ in body }
    }

    /// A server that accepts and says nothing.
    private static func silentServer() throws -> TestServer {
        try TestServer { peer in peer.waitForEnd() }
    }

    // MARK: - Configuration

    /// A closure that holds the only reference to an object which asks when it is released.
    private static func diagnostic(
        _ ask: @escaping @Sendable () -> Void
    ) -> @Sendable (URLConnection.Diagnostic) -> Void {
        let probe = ReleaseProbe(ask)
        return { _ in withExtendedLifetime(probe) {} }
    }

    @Test func `a configuration that is replaced is released where its objects can ask the load`() async {
        await #expect(processExitsWith: .success) {
            let request = URLRequest(url: URL(string: "http://127.0.0.1/")!)
            let connection = URLConnection(request: request, delegate: nil, startImmediately: false)!
            let download = URLDownload(request: request, delegate: nil, startImmediately: false)
            let released = [Latch(), Latch()]
            connection.configuration.onDiagnostic = LifetimeTests.diagnostic {
                _ = connection.label
                released[0].open()
            }
            download.configuration.onDiagnostic = LifetimeTests.diagnostic {
                _ = download.label
                released[1].open()
            }
            connection.configuration = URLConnection.Configuration()
            download.configuration = URLConnection.Configuration()
            for latch in released { try latch.wait() }
        }
    }

    // MARK: - Creation

    @Test(arguments: ["ftp://example.com/", "mailto:someone@example.com", "http:///path", "/relative"])
    func `UC-1 creation returns nil if no connection can be made`(text: String) {
        let request = URLRequest(url: url(text))
        #expect(URLConnection(request: request, delegate: nil, startImmediately: false) == nil)
        #expect(!URLConnection.canHandle(request))
    }

    @Test(arguments: ["http://example.com", "HTTPS://EXAMPLE.com/a?b", "http://[::1]:8080/", "http://a:1"])
    func `UC-64 canHandle is true of what a connection can be made for`(text: String) {
        let request = URLRequest(url: url(text))
        #expect(URLConnection.canHandle(request))
        #expect(URLConnection(request: request, delegate: nil, startImmediately: false) != nil)
    }

    @Test func `UC-2 an immediate start needs no start, and another one changes nothing`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.start()
            loop.run { recorder.calls.count == 1 }
            connection?.start()
            #expect(loop.runOut() == .finished)
            connection?.start()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(server.requests.count == 1)
    }

    @Test func `UC-13 no callback is made inside init or start`() throws {
        let recorder = Recorder()
        // Even what fails without any network fails later, and a canonical form is asked about later.
        try onLoopThread { loop in
            for text in ["http://127.0.0.1", "http://127.0.0.1:0/", "http://no..host/"] {
                let before = recorder.calls
                let connection = URLConnection(request: URLRequest(url: url(text)), delegate: recorder)
                #expect(recorder.calls == before)
                connection?.cancel()
                let other = URLConnection(
                    request: URLRequest(url: url(text)), delegate: recorder, startImmediately: false)
                other?.start()
                #expect(recorder.calls == before)
                #expect(loop.runOut() == .finished)
            }
        }
        #expect(recorder.calls.count >= 4)
    }

    @Test func `UC-14 the request is copied, and currentRequest follows what becomes of it`() throws {
        let server = try TestServer { peer in
            while true {
                switch try peer.readRequest().target {
                case "/": try peer.respond("302 Found", ["Location: /elsewhere"])
                default: try peer.respond(body: "here")
                }
            }
        }
        let bare = URLRequest(url: url("http://127.0.0.1:\(server.port)"))
        let seen = Box<[String]>([])
        let recorder = Recorder { _, connection in
            seen.value.append(connection.currentRequest.url?.absoluteString ?? "")
            #expect(connection.originalRequest.url == bare.url)
        }
        try onLoopThread { loop in
            var request = bare
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            request.url = URL(string: "http://127.0.0.1:1/")
            #expect(connection?.originalRequest.url == bare.url)
            #expect(connection?.currentRequest.url == bare.url)
            connection?.start()
            loop.runOut()
            #expect(connection?.currentRequest.url == server.url("/elsewhere"))
        }
        let (first, last) = (server.url("/").absoluteString, server.url("/elsewhere").absoluteString)
        #expect(seen.value == [bare.url?.absoluteString ?? "", first, last, last, last])
    }

    // MARK: - Who lives

    @Test func `UC-15 a running connection and its delegate live without any reference, and not longer`()
        throws
    {
        let server = try Self.server()
        let boxes = try onLoopThread { loop in
            var recorder: Recorder? = Recorder()
            var connection: URLConnection? = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder)
            let (delegate, weak) = (WeakBox(recorder), WeakBox(connection))
            recorder = nil
            connection = nil
            #expect(!delegate.isEmpty)
            #expect(!weak.isEmpty)
            #expect(loop.runOut() == .finished)
            return (delegate, weak)
        }
        #expect(boxes.0.isEmpty, "the delegate is still there")
        #expect(boxes.1.isEmpty, "the connection is still there")
    }

    @Test func `UC-15 the delegate is let go while the connection is kept`() throws {
        let server = try Self.server()
        try onLoopThread { loop in
            var recorder: Recorder? = Recorder()
            let weak = WeakBox(recorder)
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            recorder = nil
            loop.runOut()
            #expect(weak.isEmpty)
            withExtendedLifetime(connection) {}
        }
    }

    @Test func `UC-15 nothing stays after a failure, a cancel, an unstarted end, and a queue`() throws {
        let silent = try Self.silentServer()
        let server = try Self.server()
        let queue = OperationQueue()
        let refused = try RefusedPort()
        let refusedURL = url("http://127.0.0.1:\(refused.port)/")
        let boxes = try onLoopThread { loop -> [String: (WeakBox<Recorder>, WeakBox<URLConnection>)] in
            var boxes: [String: (WeakBox<Recorder>, WeakBox<URLConnection>)] = [:]
            func make(_ name: String, _ url: URL, _ use: (URLConnection) -> Void) {
                let recorder = Recorder()
                guard
                    let connection = URLConnection(
                        request: URLRequest(url: url), delegate: recorder, startImmediately: false)
                else { return }
                boxes[name] = (WeakBox(recorder), WeakBox(connection))
                use(connection)
            }
            make("never started", server.url()) { _ in }
            make("refused", refusedURL) { $0.start() }
            make("cancelled before start", server.url()) { connection in
                connection.cancel()
                connection.start()
            }
            make("cancelled", silent.url()) { connection in
                connection.start()
                loop.run { silent.accepted > 0 }
                connection.cancel()
            }
            make("queue", server.url()) { connection in
                connection.setDelegateQueue(queue)
                connection.start()
            }
            loop.runOut()
            return boxes
        }
        withExtendedLifetime(refused) {}
        queue.waitUntilAllOperationsAreFinished()
        for (name, box) in boxes {
            try waitFor("the end of what was \(name)") { box.0.isEmpty && box.1.isEmpty ? () : nil }
        }
    }

    @Test func `UC-15 nothing stays when the thread ends in the middle of a load`() throws {
        let server = try Self.silentServer()
        let boxes = try onLoopThread { loop in
            let recorder = Recorder()
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            while server.accepted == 0 {
                _ = loop.run(in: .default, for: 0.01, returnAfterSourceHandled: true)
            }
            return (WeakBox(recorder), WeakBox(connection))
        }
        #expect(boxes.0.isEmpty, "the delegate is still there")
        #expect(boxes.1.isEmpty, "the connection is still there")
    }

    @Test func `UC-15 nothing stays when the loop has ended before the start`() throws {
        let thread = LoopThread { _ in }
        let ended = try thread.loop
        try thread.value()
        var recorder: Recorder? = Recorder()
        var connection = URLConnection(
            request: URLRequest(url: url("http://127.0.0.1:1/")), delegate: recorder, startImmediately: false)
        let boxes = (WeakBox(recorder), WeakBox(connection))
        connection?.schedule(in: ended, forMode: .default)
        connection?.start()
        recorder = nil
        connection = nil
        #expect(boxes.0.isEmpty, "the delegate is still there")
        #expect(boxes.1.isEmpty, "the connection is still there")
    }

    // MARK: - Cancelling

    @Test func `UC-17 cancel before start prevents it`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.cancel()
            connection?.start()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == [])
        #expect(server.accepted == 0)
    }

    @Test(arguments: [Recorder.Call.response, .data, .finish])
    func `UC-17 cancel inside a callback delivers nothing more`(call: Recorder.Call) throws {
        let server = try Self.server(longText(500_000))
        let recorder = Recorder { current, connection in
            if current == call {
                connection.cancel()
                connection.cancel()
            }
        }
        try load(server.url(), recorder: recorder)
        switch call {
        case .response: #expect(recorder.calls == ["response 200"])
        case .data:
            #expect(recorder.calls == ["response 200", "data"])
            #expect(recorder.pieces.count == 1)
        default: #expect(recorder.calls == ["response 200", "data", "finish"])
        }
    }

    @Test func `UC-17 cancel on the loop's own thread between callbacks delivers nothing more`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            loop.run { recorder.body.count == 5 }
            connection?.cancel()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data"])
    }

    @Test func `UC-17 cancel from another thread while a callback runs lets that one finish`() throws {
        let server = try Self.server(longText(500_000))
        let (entered, cancelled) = (Latch(), Latch())
        let finished = Box(false)
        let recorder = Recorder { call, _ in
            guard call == .response else { return }
            entered.open()
            cancelled.waitOrRecord()
            finished.value = true
        }
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        let thread = LoopThread { loop in
            connection?.start()
            return loop.runOut()
        }
        try entered.wait()
        // Does not wait for the callback.
        connection?.cancel()
        #expect(!finished.value)
        cancelled.open()
        #expect(try thread.value() == .finished)
        #expect(recorder.calls == ["response 200"])
    }

    @Test func `UC-17 onDiagnostic is not called by a thread that cancels`() throws {
        let asked = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            asked.open()
            peer.waitForEnd()
        }
        let callers = Box<[pthread_t]>([])
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: Recorder(), startImmediately: false)
        connection?.configuration.onDiagnostic = { _ in callers.mutate { $0.append(pthread_self()) } }
        let thread = LoopThread { loop in
            connection?.start()
            return loop.runOut()
        }
        try asked.wait()
        connection?.cancel()
        #expect(try thread.value() == .finished)
        #expect(!callers.value.isEmpty)
        #expect(!callers.value.contains(pthread_self()))
    }

    /// Start on one thread, cancel on another, as close as it gets: the loop must be left whatever comes
    /// first.
    @Test func `UC-17 cancel from another thread at the moment of the start`() throws {
        let server = try Self.silentServer()
        for _ in 0..<300 {
            let recorder = Recorder()
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            let ready = Latch()
            let thread = LoopThread { loop in
                ready.open()
                connection?.start()
                return loop.run(in: .default, for: 20, returnAfterSourceHandled: false)
            }
            try ready.wait()
            connection?.cancel()
            let result = try thread.value()
            #expect(result == .finished)
            #expect(recorder.calls == [])
            if result != .finished { break }
        }
    }

    @Test func `UC-17 the connection may be dropped and others started in a callback`() throws {
        let server = try Self.server()
        let second = Recorder()
        let first = Recorder { call, connection in
            guard call == .response else { return }
            _ = URLConnection(request: URLRequest(url: server.url("/second")), delegate: second)
            connection.cancel()
        }
        try load(server.url("/first"), recorder: first)
        #expect(first.calls == ["response 200"])
        #expect(second.calls == ["response 200", "data", "finish"])
    }

    // MARK: - Nested runs

    @Test func `RL-42 a callback may run its own loop again in the same mode`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
            try peer.send("67890")
            peer.waitForEnd()
        }
        let other = try Self.server()
        let inner = Recorder()
        let recorder = Recorder { call, _ in
            guard call == .response else { return }
            // Another connection is served meanwhile; this one waits, and does not make the loop spin.
            _ = URLConnection(request: URLRequest(url: other.url()), delegate: inner)
            RunLoop.currentLoop().run { inner.isDone }
            RunLoop.currentLoop().runInVain()
        }
        try load(server.url(), recorder: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.text == "1234567890")
        #expect(inner.calls.last == "finish")
    }

    /// A connection that was turned away in a nested run, and then kept for the next request, has to be heard
    /// again by the next one.
    @Test func `UC-58 a kept connection is heard after a nested run that outlasted the timeout`() throws {
        let server = try TestServer.answering { _ in "whole" }
        let clock = ManualClock(advancesAutomatically: false)
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 60
        let recorder = Recorder { call, _ in
            guard call == .response else { return }
            // The response is here already; the timer comes in vain meanwhile.
            RunLoop.currentLoop().runWhileTimePasses(by: clock)
        }
        try onLoopThread { [request] loop in
            clock.attach(to: loop)
            _ = URLConnection(request: request, delegate: recorder)
            #expect(loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false) == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        let next = try load(request)
        #expect(next.calls == ["response 200", "data", "finish"])
        #expect(server.accepted == 1)
    }
}
