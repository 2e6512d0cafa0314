import Rondo
import RondoTestSupport
import Testing

/// The small programs of the TH rules, but for those of the main loop (`RondoTests`).
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ThreadPatternTests {
    fileprivate static func server() throws -> TestServer {
        try TestServer.answering { _ in longText(100_000) }
    }

    // MARK: - TH-1 and TH-2

    /// In a process of its own: here another test may run the loop of the same worker.
    @Test func `TH-1 on a dispatch worker whose loop is not run no callback comes`() async {
        await #expect(processExitsWith: .success) {
            let server = try ThreadPatternTests.server()
            let recorder = Recorder()
            let done = Latch()
            DispatchQueue.global().async {
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
                done.open()
            }
            try done.wait()
            // Time for a hidden engine, if there were one.
            try onLoopThread { $0.runInVain(for: 0.3) }
            precondition(recorder.calls == [] && server.accepted == 0, "\(recorder.calls)")
        }
    }

    @Test(arguments: [false, true])
    func `TH-1 TH-2 on a thread that ends no callback comes, and a delegate queue does not change that`(
        hasQueue: Bool
    ) throws {
        let server = try Self.server()
        let recorder = Recorder()
        try onLoopThread { _ in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            if hasQueue { connection?.setDelegateQueue(OperationQueue()) }
        }
        try onLoopThread { $0.runInVain(for: 0.3) }
        #expect(recorder.calls == [])
        #expect(server.accepted == 0)
    }

    @Test func `TH-1 on a thread that lives on without running its loop no callback comes`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        let end = Latch()
        let thread = LoopThread { loop -> Bool in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            end.waitOrRecord()
            let before = recorder.calls
            // The same code succeeds once the loop is run.
            loop.runOut()
            return before == []
        }
        try onLoopThread { $0.runInVain(for: 0.3) }
        #expect(recorder.calls == [])
        end.open()
        #expect(try thread.value())
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// In a process of its own: the operation's thread is a dispatch worker, which ends when Dispatch likes and keeps
    /// its loop until then.
    @Test func `TH-1 in an operation the same code succeeds if it runs its loop in default`() async {
        await #expect(processExitsWith: .success) {
            let server = try ThreadPatternTests.server()
            let recorder = Recorder()
            let done = Latch()
            OperationQueue().addOperation {
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
                _ = RunLoop.current.run(in: .default, for: 60, returnAfterSourceHandled: false)
                done.open()
            }
            try done.wait()
            precondition(recorder.calls == ["response 200", "data", "finish"], "\(recorder.calls)")
        }
    }

    // MARK: - TH-4 and TH-5

    @Test func `TH-4 stop on the saved loop in the terminal callback ends the worker's run`() throws {
        let server = try Self.server()
        let recorder = Recorder { call, _ in if call == .finish { RunLoop.currentLoop().stop() } }
        let log = EventLog()
        try onLoopThread { loop in
            recorder.loop = loop
            // With it, only the stop can end the run.
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            log.note("\(loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false))")
            log.note("behind it")
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == [RunLoop.Mode.default.rawValue])
        #expect(log.entries == ["stopped", "behind it"])
    }

    @Test func `TH-4 stop on the saved loop works from a delegate queue's thread`() throws {
        let server = try Self.server()
        let saved = Box<RunLoop?>(nil)
        let recorder = Recorder { call, _ in if call == .finish { saved.value?.stop() } }
        let result = try onLoopThread { loop in
            saved.value = loop
            recorder.loop = loop
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.setDelegateQueue(OperationQueue())
            return loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
        }
        #expect(result == .stopped)
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == ["another thread"])
    }

    @Test func `TH-5 stopping the callback's current loop does not end the worker's run`() throws {
        let server = try Self.server()
        let called = Latch()
        let recorder = Recorder { call, _ in
            guard call == .finish else { return }
            // On the queue's thread: not the worker's loop.
            RunLoop.currentLoop().stop()
            called.open()
        }
        let thread = LoopThread { loop in
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.setDelegateQueue(OperationQueue())
            return loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
        }
        try called.wait()
        let worker = try thread.loop
        // It sleeps again after everything that the end of the load brings.
        try onLoopThread { $0.runInVain() }
        try worker.waitUntilAsleep()
        #expect(worker.currentMode == .default)
        worker.stop()
        #expect(try thread.value() == .stopped)
    }

    // MARK: - TH-6, TH-8, TH-9

    @Test func `TH-6 a loop around short runs loads completely`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            while !recorder.isDone {
                guard loop.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1)) else { break }
            }
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(longText(100_000)))
    }

    @Test func `TH-8 a loader thread serves many loads, also after idle times`() throws {
        let server = try Self.server()
        let loader = RunLoopThread(name: "loader")
        loader.start()
        for _ in 0..<2 {
            let recorders = (0..<10).map { _ in Recorder() }
            for recorder in recorders {
                loader.perform {
                    let connection = URLConnection(
                        request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                    connection?.schedule(in: RunLoop.currentLoop(), forMode: .common)
                    connection?.start()
                }
            }
            for recorder in recorders {
                try waitFor("the end of a load") { recorder.isDone ? () : nil }
                #expect(recorder.calls == ["response 200", "data", "finish"])
            }
            try loader.runLoop.waitUntilAsleep()
        }
        loader.stop()
        loader.join()
    }

    @Test func `TH-9 a block performed on the worker's loop cancels and ends the run`() throws {
        let server = try TestServer { peer in peer.waitForEnd() }
        let recorder = Recorder()
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        let thread = LoopThread { loop in
            connection?.start()
            return loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
        }
        try waitFor("the connection") { server.accepted == 1 ? () : nil }
        let loop = try thread.loop
        loop.perform {
            connection?.cancel()
            loop.stop()
        }
        #expect(try thread.value() == .stopped)
        #expect(recorder.calls == [])
    }

    // MARK: - TH-10

    @Test func `TH-10 while the loop scrolls only the connection in common modes progresses`() throws {
        // Every byte is sent by the test's word, so that progress is no question of speed.
        let total = 60
        let rounds = 6
        let words = (0..<rounds).map { _ in Latch() }
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let text = longText(total)
            for round in 0..<rounds {
                try words[round].wait()
                try peer.send(String(text.dropFirst(round * 10).prefix(10)))
            }
            peer.waitForEnd()
        }
        let (still, moving) = (Recorder(), Recorder())
        try onLoopThread { loop in
            (still.loop, moving.loop) = (loop, loop)
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: still)
            let common = URLConnection(
                request: URLRequest(url: server.url()), delegate: moving, startImmediately: false)
            common?.schedule(in: loop, forMode: .common)
            common?.start()
            #expect(loop.run { still.response != nil && moving.response != nil })
            var stood = 0
            for round in 0..<rounds {
                let mode: RunLoop.Mode = round % 2 == 0 ? .tracking : .default
                words[round].open()
                let expected = (round + 1) * 10
                #expect(loop.run(mode) { moving.body.count == expected })
                if mode == .tracking {
                    loop.runInVain(mode, for: 0.05)
                    #expect(still.body.count == stood, "bytes came in tracking")
                } else {
                    #expect(loop.run(mode) { still.body.count == expected })
                    stood = expected
                }
            }
            loop.runOut()
        }
        #expect(still.text == longText(total))
        #expect(moving.text == longText(total))
        #expect(still.calls == ["response 200", "data", "finish"])
        #expect(moving.calls == ["response 200", "data", "finish"])
        let (defaultMode, tracking) = (RunLoop.Mode.default.rawValue, RunLoop.Mode.tracking.rawValue)
        #expect(still.places == [defaultMode])
        #expect(moving.places == [defaultMode, tracking])
    }

    // MARK: - TH-11

    @Test
    func `TH-11 a load started on one thread and scheduled on another calls back there in its mode`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        let worker = RunLoopThread(name: "worker", mode: .work)
        let loop = worker.start()
        recorder.loop = loop
        try onLoopThread { _ in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .work)
            connection?.start()
        }
        // The thread that started it is gone already.
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        worker.stop()
        worker.join()
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == ["work"])
    }
}
