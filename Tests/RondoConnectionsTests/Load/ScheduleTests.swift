import Rondo
import RondoTestSupport
import Testing

/// Tests which loop and mode drive a connection, and until when a program can choose them.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ScheduleTests {
    private static func echo() throws -> TestServer {
        try TestServer.answering { request in "you asked for \(request.target)" }
    }

    @Test func `settings that are set after the start have no effect`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "ok")
        }
        let told = Box(0)
        let recorder = Recorder()
        try onLoopThread { loop in
            let request = URLRequest(url: server.url())
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            connection?.start()
            connection?.configuration.omittedFields = ["User-Agent", "Accept", "Accept-Encoding"]
            connection?.configuration.onDiagnostic = { _ in told.mutate { $0 += 1 } }
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.isDone && told.value == 0)
        #expect(server.requests.first?.value("User-Agent") != nil)
    }

    @Test func `a diagnostic that comes equals the one that a test makes`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "ok")
        }
        let told = Box<[URLConnection.Diagnostic]>([])
        try onLoopThread { loop in
            let request = URLRequest(url: server.url())
            let connection = URLConnection(
                request: request, delegate: Recorder(), startImmediately: false)
            connection?.configuration.onDiagnostic = { diagnostic in told.mutate { $0.append(diagnostic) } }
            connection?.start()
            #expect(loop.runOut() == .finished)
        }
        let head = try #require(told.value.first { $0.kind == .responseHead })
        #expect(head == .responseHead(head.head ?? ""))
        #expect(head != .responseHead("HTTP/1.1 200 OK\r\n"))
    }

    @Test func `UC-3 an immediate start is scheduled in default only`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            #expect(connection != nil)
            // Not in tracking, although it is a common mode, and not anywhere else.
            #expect(loop.run(in: .tracking, for: 60, returnAfterSourceHandled: true) == .finished)
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: true) == .finished)
            loop.runInVain(.tracking)
            #expect(recorder.calls == [])
            #expect(server.accepted == 0)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
    }

    @Test func `UC-3 callbacks come on the creating thread, wherever others run`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let bystander = RunLoopThread(name: "bystander")
        bystander.start()
        defer { bystander.stop() }
        try onLoopThread { loop in
            recorder.loop = loop
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            loop.runOut()
        }
        #expect(recorder.calls.last == "finish")
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
    }

    @Test func `UC-4 nothing is sent before start`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .default)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
            loop.runInVain()
            #expect(server.accepted == 0)
            connection?.start()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-72 RL-37 a load that is over ends no run`() throws {
        let recorder = Recorder()
        let results = try onLoopThread { loop -> [RunLoop.RunResult] in
            // Something else that keeps the mode from being empty, and has nothing to say.
            let idle = InputStream(data: Data([1]))
            idle.schedule(in: loop, forMode: .default)
            idle.open()
            while loop.run(in: .default, for: 0, returnAfterSourceHandled: true) == .handledSource {}
            let connection = URLConnection(
                request: URLRequest(url: url("http://127.0.0.1:9/")), delegate: recorder)
            connection?.cancel()
            let result = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            idle.close()
            return [result, loop.run(in: .default, for: 0, returnAfterSourceHandled: true)]
        }
        #expect(results == [.timedOut, .finished])
        #expect(recorder.calls == [])
    }

    @Test func `UC-4 scheduled in several modes and by the common name, each callback comes once`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: longText(300_000))
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            loop.addCommonMode(.work)
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            for mode in [RunLoop.Mode.default, .common, .work, .other, .common] {
                connection?.schedule(in: loop, forMode: mode)
            }
            connection?.start()
            var modes = [RunLoop.Mode.work, .other, .tracking, .default]
            while !recorder.isDone, let mode = modes.popLast() {
                modes.insert(mode, at: 0)
                guard loop.run(mode: mode, before: Date(timeIntervalSinceNow: 60)) else { break }
            }
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(longText(300_000)))
    }

    @Test func `UC-4 scheduled in the loops of two threads, each callback comes once and one at a time`()
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n")
            for piece in 0..<20 { try peer.send(String(repeating: "\(piece % 10)", count: 100_000)) }
            peer.waitForEnd()
        }
        let inside = Box(0)
        let overlaps = Box(0)
        let recorder = Recorder { _, _ in
            if inside.value != 0 { overlaps.value += 1 }
            inside.value = 1
            sched_yield()
            inside.value = 0
        }
        let threads = [RunLoopThread(name: "first"), RunLoopThread(name: "second")]
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        for thread in threads { connection?.schedule(in: thread.start(), forMode: .default) }
        connection?.start()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        for thread in threads {
            thread.stop()
            thread.join()
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        let expected = (0..<20).map { String(repeating: "\($0 % 10)", count: 100_000) }.joined()
        #expect(recorder.hasBody(expected))
        #expect(overlaps.value == 0)
    }

    @Test func `UC-5 an explicit schedule replaces the implicit one`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .work)
            connection?.start()
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .finished)
            loop.runInVain()
            #expect(recorder.calls == [])
            #expect(loop.runOut(.work) == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == ["work"])
    }

    @Test func `UC-5 start without a schedule takes the starting thread's loop, in default`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        // Made on this thread, started on another one.
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        try onLoopThread { loop in
            recorder.loop = loop
            connection?.start()
            #expect(loop.run(in: .tracking, for: 60, returnAfterSourceHandled: true) == .finished)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls.last == "finish")
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
    }

    @Test func `UC-6 unschedule before start drops one loop and mode`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .work)
            connection?.schedule(in: loop, forMode: .other)
            connection?.unschedule(from: loop, forMode: .work)
            connection?.start()
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: true) == .finished)
            #expect(loop.runOut(.other) == .finished)
            // After the end it is not needed, and harmless.
            connection?.unschedule(from: loop, forMode: .other)
        }
        #expect(recorder.calls.last == "finish")
        #expect(recorder.places == ["other"])
    }

    @Test func `UC-7 after the start schedule and unschedule have no effect`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.schedule(in: loop, forMode: .tracking)
            connection?.schedule(in: loop, forMode: .common)
            #expect(loop.run(in: .tracking, for: 60, returnAfterSourceHandled: true) == .finished)
            connection?.unschedule(from: loop, forMode: .default)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
    }

    @Test func `UC-12 in other modes the load pauses and nothing is lost`() throws {
        let next = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
            try peer.send(String(longText(200_000).prefix(10_000)))
            try next.wait()
            try peer.send(String(longText(200_000).dropFirst(10_000)))
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            #expect(loop.run { recorder.body.count == 10_000 })
            next.open()
            // The rest arrives now, and has to wait.
            loop.runInVain(.tracking)
            loop.runInVain(.work)
            #expect(recorder.calls == ["response 200", "data"])
            #expect(recorder.body.count == 10_000)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(longText(200_000)))
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
    }

    @Test func `UC-12 a paused load holds the server back`() throws {
        let total = 64 << 20
        let sent = Box(0)
        let server = try floodingServer(total, counting: sent)
        let count = Box(0)
        try onLoopThread { loop in
            let delegate = ByteCounter(count)
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: delegate)
            #expect(loop.run { count.value > 0 })
            loop.runInVain(.tracking, for: 0.3)
            #expect(sent.value < total, "the server was not held back")
            #expect(loop.runOut() == .finished)
        }
        #expect(count.value == total)
    }

    @Test func `UC-72 from start to end the connection keeps its modes from being empty`() throws {
        let (server, _, answer) = try lateServer()
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .work)
            connection?.schedule(in: loop, forMode: .other)
            // Before the start it does not count.
            #expect(loop.run(in: .work, for: 0, returnAfterSourceHandled: false) == .finished)
            connection?.start()
            for _ in 0..<5 {
                #expect(loop.run(in: .work, for: 0.01, returnAfterSourceHandled: false) == .timedOut)
                #expect(loop.run(in: .other, for: 0.01, returnAfterSourceHandled: false) == .timedOut)
            }
            #expect(recorder.calls == [])
            answer.open()
            #expect(loop.runOut(.work) == .finished)
            #expect(loop.run(in: .other, for: 0, returnAfterSourceHandled: false) == .finished)
        }
        #expect(recorder.calls.last == "finish")
    }

    @Test func `UC-72 while a name is looked up the mode is not empty`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let url = URL(string: "http://localhost:\(server.port)/name")
        try onLoopThread { loop in
            guard let url else { return }
            _ = URLConnection(request: URLRequest(url: url), delegate: recorder)
            // S2's main sample: start, then run until nothing is left.
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-72 a delivery is a handled source`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            // No limit: only handled sources let these calls return.
            while !recorder.isDone {
                let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
                if result != .handledSource { break }
            }
        }
        #expect(recorder.calls.last == "finish")
    }

    @Test func `UC-72 a failure by timeout is a handled source too`() throws {
        let server = try TestServer { peer in peer.waitForEnd() }
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 0.2
        let recorder = Recorder()
        try onLoopThread { [request] loop in
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            _ = URLConnection(request: request, delegate: recorder)
            while !recorder.isDone {
                let result = loop.run(in: .default, for: 20, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
                if result != .handledSource { break }
            }
        }
        #expect(recorder.calls == ["fail -1001"])
    }

    @Test func `UC-16 after the end the connection has left all its loops and woken them`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let started = Latch()
        let threads = (0..<2).map { _ in
            LoopThread { loop -> Result<RunLoop.RunResult, any Error> in
                Result {
                    try started.wait()
                    // Held by nothing but the connection, which ends on one of the two.
                    return loop.runOut(.work)
                }
            }
        }
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        for thread in threads { connection?.schedule(in: try thread.loop, forMode: .work) }
        connection?.start()
        started.open()
        for thread in threads { #expect(try thread.value().get() == .finished) }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-16 a run whose first block cancels the last load ends`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            loop.performWithoutWaking(inModes: [.default]) { connection?.cancel() }
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == [])
    }

    @Test func `UC-16 a run whose first block runs the loop until the last load is over ends`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            loop.performWithoutWaking(inModes: [.default]) {
                while !recorder.isDone { loop.run(mode: .default, before: .distantFuture) }
            }
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-16 after cancel from another thread a sleeping loop ends its run`() throws {
        let server = try TestServer { peer in peer.waitForEnd() }
        let recorder = Recorder()
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        let thread = LoopThread { loop in
            connection?.start()
            return loop.runOut()
        }
        try waitFor("the connection") { server.accepted == 1 ? () : nil }
        try thread.loop.waitUntilAsleep()
        connection?.cancel()
        #expect(try thread.value() == .finished)
        #expect(recorder.calls == [])
    }
}

/// Counts bytes and keeps none.
final class ByteCounter: NSObject, URLConnectionDataDelegate, Sendable {
    private let count: Box<Int>

    init(_ count: Box<Int>) {
        self.count = count
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { count.value += data.count }
}
