import Rondo
import RondoCore
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Callbacks as operations of a queue.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DelegateQueueTests {
    private static func server(_ body: String = longText(400_000)) throws -> TestServer {
        try TestServer.answering { _ in body }
    }

    private static func queue(width: Int) -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = width
        return queue
    }

    @Test func `UC-9 a queue set before start needs no run loop`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        connection?.setDelegateQueue(Self.queue(width: 1))
        connection?.start()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(longText(400_000)))
    }

    @Test func `TH-1 UC-15 a connection whose thread has ended before its load says so`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        let made = Box<URLConnection?>(nil)
        try onLoopThread { _ in
            made.value = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
        }
        let connection = try #require(made.value)
        #expect(connection.whyNotDelivering.reason == .threadEnded)
        #expect(recorder.calls == [])
        // One that is over has had its calls.
        try onLoopThread { loop in
            made.value = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            loop.runOut()
        }
        #expect(made.value?.whyNotDelivering.reason == .invalid)
    }

    @Test func `UC-9 a connection whose call waits for its queue says so`() throws {
        let server = try Self.server("a body")
        let recorder = Recorder()
        let (queue, go) = (Self.queue(width: 1), Latch())
        queue.name = "callbacks"
        queue.addOperation { go.waitOrRecord() }
        defer { go.open() }
        let connection = try #require(
            URLConnection(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false))
        connection.setDelegateQueue(queue)
        connection.start()
        try waitFor("the call that waits") {
            connection.whyNotDelivering.description
                == "its call waits for the queue “callbacks”, behind an operation that has not ended"
                ? () : nil
        }
        queue.isSuspended = true
        #expect(connection.whyNotDelivering.reason == .suspended)
        queue.isSuspended = false
        go.open()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
    }

    @Test func `UC-10 with a queue on an immediate start the loop still drives the load`() throws {
        let server = try Self.server()
        let recorder = Recorder()
        try onLoopThread { loop in
            recorder.loop = loop
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.setDelegateQueue(Self.queue(width: 1))
            loop.runInVain(.tracking)
            #expect(server.accepted == 0)
            #expect(recorder.calls == [])
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.places == ["another thread"])
    }

    @Test func `UC-11 callbacks come in order and one at a time, however wide the queue`() throws {
        let server = try Self.server(longText(3_000_000))
        let inside = Box(0)
        let overlaps = Box(0)
        let recorder = Recorder { call, _ in
            if inside.mutate({ inside in
                inside += 1
                return inside > 1
            }) {
                overlaps.mutate { $0 += 1 }
            }
            sched_yield()
            // A moment in which others could come as well.
            let end = LoopClock.now.advanced(bySeconds: call == .response ? 0.2 : 0)
            while overlaps.value == 0, LoopClock.now < end { sched_yield() }
            inside.mutate { $0 -= 1 }
        }
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
        connection?.setDelegateQueue(Self.queue(width: 8))
        connection?.start()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.hasBody(longText(3_000_000)))
        #expect(overlaps.value == 0)
    }

    @Test func `UC-11 a redirect is asked about on the queue`() throws {
        let server = try TestServer { peer in
            while true {
                switch try peer.readRequest().target {
                case "/old": try peer.respond("302 Found", ["Location: /new"], body: "moved")
                default: try peer.respond(body: "here")
                }
            }
        }
        let recorder = Recorder()
        let connection = URLConnection(
            request: URLRequest(url: server.url("/old")), delegate: recorder, startImmediately: false)
        connection?.setDelegateQueue(Self.queue(width: 4))
        connection?.start()
        try waitFor("the end of the load") { recorder.isDone ? () : nil }
        #expect(recorder.calls == ["willSend 302 \(server.url("/new"))", "response 200", "data", "finish"])
        #expect(recorder.text == "here")
    }

    @Test func `UC-11 a delegate that does not keep up holds the server back`() throws {
        let total = 64 << 20
        let sent = Box(0)
        let server = try floodingServer(total, counting: sent)
        let count = Box(0)
        let queue = Self.queue(width: 1)
        queue.isSuspended = true
        let ended = Latch()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: ByteCounter(count))
            connection?.setDelegateQueue(queue)
            loop.runInVain(for: 0.5)
            #expect(sent.value < total, "everything was taken, though the delegate took nothing")
            queue.isSuspended = false
            #expect(loop.runOut() == .finished)
            ended.open()
        }
        #expect(count.value == total)
    }

    @Test func `UC-11 one operation makes the calls that wait for a queue, however wide the queue`() throws {
        let calls = QueuedCalls()
        let queue = Self.queue(width: 4)
        let (began, mayGoOn, ended, log) = (Latch(), Latch(), Latch(), EventLog())
        let make: @Sendable (DelegateCall) -> Void = { call in
            log.note("call \(call.size)")
            began.open()
            do { try mayGoOn.wait() } catch { Issue.record(error) }
            log.note("returned")
            if call.size == 5 { ended.open() }
        }
        _ = calls.add(.data(Data(count: 1)), to: DelegateQueue(queue), make: make)
        try began.wait()
        for size in 2...5 { _ = calls.add(.data(Data(count: size)), to: DelegateQueue(queue), make: make) }
        #expect(queue.operationCount == 1)
        mayGoOn.open()
        // Between two calls there may be no operation: each is submitted when the one before it has returned.
        try ended.wait()
        #expect(log.entries == (1...5).flatMap { ["call \($0)", "returned"] })
    }

    @Test func `UC-12 US-20 a queue that is behind stops the reading, until half of what waits is called`()
        throws
    {
        let calls = QueuedCalls()
        let queue = Self.queue(width: 1)
        let limit = 1 << 20
        let steps = Box<[Bool]>([])
        let make: @Sendable (DelegateCall) -> Void = { _ in steps.mutate { $0.append(calls.mayRead) } }
        queue.isSuspended = true
        for (size, mayRead) in [(limit / 4, true), (limit / 2, true), (limit / 4, true), (0, false)] {
            guard
                case .queued(let answer) = calls.add(
                    .data(Data(count: max(0, size - QueuedCalls.bytesPerCall))), to: DelegateQueue(queue),
                    make: make)
            else {
                Issue.record("there is a queue")
                continue
            }
            #expect(answer == mayRead)
        }
        #expect(!calls.mayRead)
        queue.isSuspended = false
        // The operation that makes the calls is added by another thread.
        try waitFor("all calls") { steps.value.count == 4 ? () : nil }
        // With a quarter of it called, with three, and so on.
        #expect(steps.value == [false, true, true, true])
    }

    /// The last call may be made on the queue's thread while the loop's thread is still inside the load.
    @Test func `UC-16 the loop is left after the terminal callback on a queue, each time`() throws {
        let server = try Self.server("short")
        let queue = Self.queue(width: 4)
        for round in 0..<300 {
            let recorder = Recorder()
            let result = try onLoopThread { loop -> RunLoop.RunResult in
                let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
                connection?.setDelegateQueue(queue)
                return loop.run(in: .default, for: 20, returnAfterSourceHandled: false)
            }
            #expect(result == .finished, "round \(round): \(recorder.calls)")
            #expect(recorder.isDone)
            if result != .finished { break }
        }
    }

    @Test func `UC-17 cancel on the queue stops what waits there`() throws {
        let server = try Self.server()
        let recorder = Recorder { call, connection in if call == .response { connection.cancel() } }
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.setDelegateQueue(Self.queue(width: 1))
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200"])
    }

    @Test func `UC-41 US-87 reports of sent bytes that wait for a queue are told as one, of all these bytes`()
        throws
    {
        let (calls, queue, told) = (QueuedCalls(), Self.queue(width: 1), Box<[[Int]]>([]))
        queue.isSuspended = true
        // The second time is a retransmission.
        for count in [10_000, 3] {
            for number in 1...count {
                let added = calls.add(
                    .sent(2, total: 2 * number, expected: 20_000), to: DelegateQueue(queue)
                ) { call in
                    guard case .sent(let bytes, let total, let expected) = call else { return }
                    told.mutate { $0.append([bytes, total, expected]) }
                }
                guard case .queued(mayRead: true) = added else {
                    Issue.record("reading stops after \(number)")
                    break
                }
            }
        }
        queue.isSuspended = false
        try waitFor("the calls") { told.value.count == 2 ? () : nil }
        #expect(told.value == [[20_000, 20_000, 20_000], [6, 6, 20_000]])
    }

    /// As of a body that comes byte by byte, or a multipart of empty parts.
    @Test func `UC-12 US-87 small calls that wait for a queue stop the reading, too`() throws {
        let calls = QueuedCalls()
        let queue = Self.queue(width: 1)
        queue.isSuspended = true
        let response = URLResponse(
            url: url("http://a.example/"), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        for call in [DelegateCall.data(Data([1])), .response(response, isQuestion: false)] {
            var count = 0
            while case .queued(mayRead: true) = calls.add(call, to: DelegateQueue(queue), make: { _ in }),
                count < 10_000
            { count += 1 }
            #expect((1_000...1_024).contains(count))
            calls.removeAll()
        }
        queue.isSuspended = false
    }
}
