import Rondo
import RondoTestSupport
import Testing

/// `sendSynchronousRequest` and `sendAsynchronousRequest`.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ClassMethodTests {
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                switch try peer.readRequest().target {
                case "/old": try peer.respond("302 Found", ["Location: /new"], body: "moved")
                case "/nowhere": try peer.respond("404 Not Found", body: "nothing here")
                case "/protected":
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: "no")
                case let target: try peer.respond(body: target)
                }
            }
        }
    }

    private static func send(_ url: URL) throws -> (data: Data?, response: URLResponse?, error: URLError?) {
        try onLoopThread { _ in
            var response: URLResponse?
            do {
                let data = try URLConnection.sendSynchronousRequest(
                    URLRequest(url: url), returning: &response)
                return (data, response, nil)
            } catch {
                return (nil, response, error as? URLError)
            }
        }
    }

    @Test func `UC-60 a synchronous request returns the data and the response`() throws {
        let result = try Self.send(Self.server().url("/path"))
        #expect(result.data == Data("/path".utf8))
        #expect((result.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(result.error == nil)
    }

    @Test func `UC-60 a synchronous request throws the error`() throws {
        let port = try RefusedPort()
        let result = try Self.send(url("http://127.0.0.1:\(port.port)/"))
        #expect(result.data == nil)
        #expect(result.response == nil)
        #expect(result.error?.code == .cannotConnectToHost)
        let unsupported = try Self.send(url("ftp://127.0.0.1/"))
        #expect(unsupported.error?.code == .unsupportedURL)
        withExtendedLifetime(port) {}
    }

    @Test func `UC-60 a synchronous request blocks the calling thread only`() throws {
        let (server, asked, answer) = try lateServer()
        let thread = LoopThread { _ in
            try? URLConnection.sendSynchronousRequest(URLRequest(url: server.url()), returning: nil)
        }
        try asked.wait()
        // Meanwhile another thread loads.
        #expect(try load(Self.server().url("/other")).text == "/other")
        answer.open()
        #expect(try thread.value() == Data("late".utf8))
    }

    @Test func `UC-61 during it none of the caller's sources, timers and blocks fires`() throws {
        let server = try Self.server()
        let other = Recorder()
        let log = EventLog()
        let entries = try onLoopThread { loop in
            for mode in [RunLoop.Mode.default, .common] {
                let source = RunLoop.Source { log.note("source") }
                loop.add(source, forMode: mode)
                source.signal()
                loop.add(
                    Timer(fire: Date(timeIntervalSinceNow: -1), interval: 0, repeats: false) { _ in
                        log.note("timer")
                    }, forMode: mode)
                loop.perform(inModes: [mode]) { log.note("block") }
            }
            log.observe(of: loop, in: .default)
            _ = URLConnection(request: URLRequest(url: server.url("/slow")), delegate: other)
            for _ in 0..<3 {
                _ = try? URLConnection.sendSynchronousRequest(URLRequest(url: server.url()), returning: nil)
            }
            let during = log.entries + other.calls
            _ = loop.run(in: .default, for: 0.01, returnAfterSourceHandled: false)
            return (during, log.entries)
        }
        #expect(entries.0 == [])
        #expect(Set(entries.1).isSuperset(of: ["source", "timer", "block"]))
    }

    // After the last call of a load its connection is free, but what brought that call is still on the stack.
    @Test(arguments: [Recorder.Call.response, .data, .finish])
    func `UC-61 a synchronous request works inside a callback`(place: Recorder.Call) throws {
        let server = try Self.server()
        let inner = Box<Data?>(nil)
        let recorder = Recorder { call, _ in
            guard call == place else { return }
            inner.value = try? URLConnection.sendSynchronousRequest(
                URLRequest(url: server.url("/inner")), returning: nil)
        }
        try load(server.url("/outer"), recorder: recorder)
        #expect(inner.value == Data("/inner".utf8))
        #expect(recorder.text == "/outer")
        // Both are kept, and serve again.
        let accepted = server.accepted
        #expect(try Self.send(server.url("/later")).data == Data("/later".utf8))
        #expect(server.accepted == accepted)
    }

    @Test func `UC-61 a stop that comes meanwhile reaches the run further out`() throws {
        let (server, asked, answer) = try lateServer()
        let thread = LoopThread { loop in
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            loop.perform {
                _ = try? URLConnection.sendSynchronousRequest(URLRequest(url: server.url()), returning: nil)
            }
            return loop.run(in: .default, for: 50, returnAfterSourceHandled: false)
        }
        try asked.wait()
        try thread.loop.stop()
        answer.open()
        #expect(try thread.value() == .stopped)
    }

    @Test func `UC-62 a synchronous request follows redirects, and an error status is a response`() throws {
        let server = try Self.server()
        let moved = try Self.send(server.url("/old"))
        #expect(moved.data == Data("/new".utf8))
        #expect(moved.response?.url == server.url("/new"))
        let missing = try Self.send(server.url("/nowhere"))
        #expect(missing.data == Data("nothing here".utf8))
        #expect((missing.response as? HTTPURLResponse)?.statusCode == 404)
        let protected = try Self.send(server.url("/protected"))
        #expect((protected.response as? HTTPURLResponse)?.statusCode == 401)
        #expect(protected.data == Data("no".utf8))
    }

    @Test func `UC-62 a synchronous response is stored and reused by the cache's default rules`() throws {
        let server = try TestServer { peer in
            while true {
                let target = try peer.readRequest().target
                try peer.respond(
                    "200 OK", ["Cache-Control: max-age=1000"], body: "\(target) \(UUID().uuidString)")
            }
        }
        let (first, second) = (try Self.send(server.url("/a")), try Self.send(server.url("/a")))
        #expect(first.data?.isEmpty == false)
        #expect(first.data == second.data)
        #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(try Self.send(server.url("/b")).data != first.data)
    }

    @Test func `UC-58 UC-62 a synchronous request is ended by its timeout`() throws {
        let server = try TestServer { peer in
            if try peer.readRequest().target == "/half" {
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            }
            peer.waitForEnd()
        }
        for target in ["/silent", "/half"] {
            var request = URLRequest(url: server.url(target))
            request.timeoutInterval = 0.2
            let code = try onLoopThread { [request] _ -> URLError.Code? in
                do {
                    _ = try URLConnection.sendSynchronousRequest(request, returning: nil)
                    return nil
                } catch {
                    return (error as? URLError)?.code
                }
            }
            #expect(code == .timedOut)
        }
        try waitFor("the ends of the connections") { server.served == 0 ? () : nil }
    }

    @Test func `UC-63 an asynchronous request runs its handler once, on the queue`() throws {
        let server = try Self.server()
        let queue = OperationQueue()
        let results = Box<[String]>([])
        let done = Latch()
        let returned = Latch()
        URLConnection.sendAsynchronousRequest(URLRequest(url: server.url("/old")), queue: queue) {
            response, data, error in
            // Not before the call has returned, which waits for nothing.
            returned.waitOrRecord()
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            let text = String(decoding: data ?? Data(), as: UTF8.self)
            results.value.append("\(status) \(text) \(error == nil) \(OperationQueue.current === queue)")
            done.open()
        }
        returned.open()
        try done.wait()
        queue.waitUntilAllOperationsAreFinished()
        #expect(results.value == ["200 /new true true"])
    }

    @Test func `UC-63 an asynchronous request hands over its error`() throws {
        let port = try RefusedPort()
        let queue = OperationQueue()
        for (target, code) in [
            (url("http://127.0.0.1:\(port.port)/"), URLError.Code.cannotConnectToHost),
            (url("ftp://127.0.0.1/"), .unsupportedURL),
        ] {
            let result = Box<URLError?>(nil)
            let done = Latch()
            URLConnection.sendAsynchronousRequest(URLRequest(url: target), queue: queue) {
                response, data, error in
                if response == nil, data == nil { result.value = error as? URLError }
                done.open()
            }
            try done.wait()
            #expect(result.value?.code == code)
        }
    }

    @Test func `UC-63 many asynchronous requests at once all end`() throws {
        let server = try Self.server()
        let queue = OperationQueue()
        let texts = Box<Set<String>>([])
        for number in 0..<50 {
            URLConnection.sendAsynchronousRequest(URLRequest(url: server.url("/\(number)")), queue: queue) {
                _, data, _ in
                let text = String(decoding: data ?? Data(), as: UTF8.self)
                texts.mutate { $0.insert(text) }
            }
        }
        try waitFor("the ends of the loads") { texts.value.count == 50 ? () : nil }
        #expect(texts.value == Set((0..<50).map { "/\($0)" }))
    }
}
