import Rondo
import RondoTestSupport
import Testing

/// Idle time, and which time is not.
@Suite(.timeLimit(.minutes(5))) struct TimeoutTests {
    private static func request(_ server: TestServer, timeout: TimeInterval) -> URLRequest {
        var request = URLRequest(url: server.url())
        request.timeoutInterval = timeout
        return request
    }

    @Test func `UC-58 a server that sends nothing fails the load with timedOut`() throws {
        let server = try TestServer { peer in peer.waitForEnd() }
        let recorder = try load(Self.request(server, timeout: 0.3))
        #expect(recorder.calls == ["fail -1001"])
        #expect(recorder.error?.code == .timedOut)
        #expect(recorder.error?.localizedDescription.contains("127.0.0.1") == true)
    }

    @Test func `UC-58 a server that stops in the middle fails the load with timedOut`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            peer.waitForEnd()
        }
        let recorder = try load(Self.request(server, timeout: 0.3))
        #expect(recorder.calls == ["response 200", "data", "fail -1001"])
    }

    @Test func `UC-58 every progress restarts the idle time`() throws {
        // Longer than the timeout altogether, but never at once; the margin is for slow machines.
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            for _ in 0..<10 {
                usleep(200_000)
                try peer.send("x")
            }
            peer.waitForEnd()
        }
        let recorder = try load(Self.request(server, timeout: 1.5))
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-58 time in other modes is not counted`() throws {
        let answer = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try answer.wait()
            try peer.respond(body: "patient")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            _ = URLConnection(request: Self.request(server, timeout: 2), delegate: recorder)
            #expect(loop.run { server.requests.count == 1 })
            // Longer than the timeout; and back in default the answer is still to come.
            loop.runInVain(.tracking, for: 2.5)
            loop.runInVain(.default, for: 0.2)
            answer.open()
            loop.runOut()
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-58 time in which the loop does not run is not counted`() throws {
        let answer = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try answer.wait()
            try peer.respond(body: "patient")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            _ = URLConnection(request: Self.request(server, timeout: 2), delegate: recorder)
            #expect(loop.run { server.requests.count == 1 })
            usleep(2_500_000)
            loop.runInVain(.default, for: 0.2)
            answer.open()
            loop.runOut()
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// What came over TLS meanwhile is looked at before the clock as well, and is not lost by the look.
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
        try onLoopThread { loop in
            var request = URLRequest(url: url("https://localhost:\(port)/"))
            request.timeoutInterval = 2
            for recorder in recorders {
                let connection = URLConnection(
                    request: request, delegate: recorder, startImmediately: false)
                connection?.trustTestAuthority()
                connection?.start()
            }
            #expect(loop.run { recorders.allSatisfy { $0.response != nil } })
            stranger.tell("go")
            // Timers and sockets are due together when default runs again.
            loop.runInVain(.tracking, for: 2.5)
            _ = loop.run(in: .default, for: 20, returnAfterSourceHandled: false)
        }
        for recorder in recorders {
            #expect(recorder.calls == ["response 200", "data", "finish"])
            #expect(recorder.text == "after")
        }
        server.terminate()
    }

    @Test func `UC-58 a delegate that takes its time is not timed out for it`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n")
            try peer.send(longText(400_000))
            peer.waitForEnd()
        }
        let recorder = Recorder { call, _ in if call == .response { usleep(600_000) } }
        try load(Self.request(server, timeout: 0.3), recorder: recorder)
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// A mode named twice, or two loops that run at the same time, do not make the time pass faster.
    @Test func `UC-58 time that several places run at once counts once`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            usleep(1_200_000)
            try peer.respond(body: "in time")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let loaders = (0..<3).map { RunLoopThread(name: "loader \($0)") }
        let connection = URLConnection(
            request: Self.request(server, timeout: 2), delegate: recorder, startImmediately: false)
        for loader in loaders {
            let loop = loader.start()
            for mode in [RunLoop.Mode.default, .common, .tracking] {
                connection?.schedule(in: loop, forMode: mode)
            }
        }
        connection?.start()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        for loader in loaders { loader.stop() }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }
}
