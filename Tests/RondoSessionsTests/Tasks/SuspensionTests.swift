import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct SuspensionTests {
    @Test func `US-29 suspend and resume nest, and resumes too many are not saved up`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .default)
        let task = session.dataTask(with: server.url())
        task.suspend()
        task.suspend()
        task.resume()
        task.resume()
        #expect(task.state == .suspended)
        task.resume()
        #expect(task.state == .running)
        task.resume()
        task.suspend()
        #expect(task.state == .suspended)
        task.cancel()
        task.resume()
        #expect(task.state == .canceling || task.state == .completed)
        try waitFor("the end") { task.state == .completed ? () : nil }
        task.resume()
        #expect(task.state == .completed)
        #expect((task.error as? URLError)?.code == .cancelled)
    }

    /// Loads on a loop by a task that is suspended in each call with data, and has the server go on after the first.
    ///
    /// - Parameter body: Begins when the server has gone on, and the task has had time to notice.
    private static func whileSuspended(
        _ server: TestServer, mayGoOn: Latch, hasGoneOn: Latch,
        _ body: @escaping @Sendable (RunLoop, URLSessionDataTask, Notes) -> [[String]]
    ) throws -> [[String]] {
        try onLoopThread { loop in
            let notes = Notes(on: loop) { call, task in if call == "data" { task?.suspend() } }
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url())
            task.resume()
            loop.run { task.state == .suspended }
            mayGoOn.open()
            do { try hasGoneOn.wait() } catch { Issue.record(error) }
            loop.runInVain()
            return body(loop, task, notes)
        }
    }

    @Test func `US-30 a suspended task reads nothing and makes no call until it is resumed`() throws {
        let (mayGoOn, sent) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
            try mayGoOn.wait()
            try peer.send("two")
            sent.open()
            peer.waitForEnd()
        }
        let calls = try Self.whileSuspended(server, mayGoOn: mayGoOn, hasGoneOn: sent) { loop, task, notes in
            let before = notes.calls + [notes.text]
            task.resume()
            loop.run { task.state == .suspended }
            let between = notes.calls + [notes.text]
            task.resume()
            loop.runOut()
            return [before, between, notes.calls + [notes.text]]
        }
        #expect(
            calls == [
                ["response 200", "data", "one"], ["response 200", "data", "onetwo"],
                ["response 200", "data", "complete", "onetwo"],
            ])
    }

    /// Suspends its task when a piece of the body was sent, or when an informational response has come.
    private final class Pausing: NSObject, URLSessionDataDelegate, Sendable {
        let sent = Box<[Int64]>([])
        let isComplete = Box(false)
        /// Whether the end of each request was noted.
        let hasRequestEnds = Box<[Bool]>([])
        private let isForHints: Bool

        init(forHints: Bool = false) { isForHints = forHints }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didReceiveInformationalResponse response: HTTPURLResponse
        ) {
            task.suspend()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
            totalBytesSent: Int64, totalBytesExpectedToSend: Int64
        ) {
            if sent.value.isEmpty, !isForHints { task.suspend() }
            sent.mutate { $0.append(totalBytesSent) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            hasRequestEnds.mutate { $0 += metrics.transactionMetrics.map { $0.requestEndDate != nil } }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            isComplete.value = error == nil
        }
    }

    @Test func `US-30 a task that is suspended while it sends its body sends no further piece`() throws {
        let (isStill, isCounted) = (Latch(), Latch())
        let delegate = Pausing()
        let hasMore = Box(true)
        let server = try TestServer { peer in
            let head = try peer.readHead()
            try isStill.wait()
            let sent = Int(delegate.sent.value.first ?? 0)
            _ = try peer.readBytes(sent)
            hasMore.value = peer.hasUnread
            isCounted.open()
            let length = head.value("Content-Length").flatMap { Int($0) } ?? 0
            _ = try peer.readBytes(length - sent)
            try peer.respond(body: "done")
        }
        let reports = try onLoopThread { loop -> Int in
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            let task = session.uploadTask(with: request, from: Data(count: 4 << 20))
            task.resume()
            loop.run(.work) { !delegate.sent.value.isEmpty }
            loop.runInVain(.work)
            isStill.open()
            #expect(throws: Never.self) { try isCounted.wait() }
            let reports = delegate.sent.value.count
            task.resume()
            loop.run(.work) { delegate.isComplete.value }
            session.invalidateAndCancel()
            return reports
        }
        #expect(reports == 1)
        #expect(!hasMore.value)
        #expect(delegate.isComplete.value)
    }

    @Test(arguments: [false, true])
    func `US-30 a task that is suspended in the call for the last bytes keeps its connection`(isFile: Bool)
        throws
    {
        let hasAnswered = Latch()
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond(body: "done")
                hasAnswered.open()
            }
        }
        let folder = try Folder()
        let file = try folder.file(Data("body".utf8))
        let delegate = Pausing()
        try onLoopThread { loop in
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            let task =
                isFile
                ? session.uploadTask(with: request, fromFile: file)
                : session.uploadTask(with: request, from: Data("body".utf8))
            task.resume()
            loop.run(.work) { task.state == .suspended }
            #expect(throws: Never.self) { try hasAnswered.wait() }
            task.resume()
            loop.run(.work) { delegate.isComplete.value }
            let next = session.dataTask(with: server.url())
            next.resume()
            loop.run(.work) { next.state == .completed && delegate.hasRequestEnds.value.count == 2 }
            session.invalidateAndCancel()
        }
        #expect(delegate.sent.value == [4])
        #expect(delegate.hasRequestEnds.value == [true, true])
        #expect(server.requests.count == 2)
        #expect(server.accepted == 1)
    }

    /// Both responses come in one packet.
    @Test func `US-30 a task that is suspended right before the server's go-ahead sends no body`() throws {
        let (isStill, isCounted) = (Latch(), Latch())
        let delegate = Pausing(forHints: true)
        let hasBody = Box(true)
        let server = try TestServer { peer in
            let head = try peer.readHead()
            try peer.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try isStill.wait()
            hasBody.value = peer.hasUnread
            isCounted.open()
            _ = try peer.readBody(of: head)
            try peer.respond(body: "done")
        }
        try onLoopThread { loop in
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.setValue("100-continue", forHTTPHeaderField: "Expect")
            let task = session.uploadTask(with: request, from: Data("body".utf8))
            task.resume()
            loop.run(.work) { task.state == .suspended }
            loop.runInVain(.work)
            isStill.open()
            #expect(throws: Never.self) { try isCounted.wait() }
            #expect(delegate.sent.value.isEmpty)
            task.resume()
            loop.run(.work) { delegate.isComplete.value }
            session.invalidateAndCancel()
        }
        #expect(!hasBody.value)
        #expect(delegate.sent.value == [4])
        #expect(delegate.isComplete.value)
    }

    @Test func `US-30 a call that waits for the queue is not made while the task is suspended`() throws {
        let server = try echoServer()
        let (entered, mayLeave) = (Latch(), Latch())
        let notes = Notes { call, _ in
            guard call.hasPrefix("response") else { return }
            entered.open()
            do { try mayLeave.wait() } catch { Issue.record(error) }
        }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        task.resume()
        try entered.wait()
        task.suspend()
        mayLeave.open()
        // What would be made in vain is behind this in the queue.
        let passed = Latch()
        for _ in 0..<3 { session.delegateQueue.addOperation {} }
        session.delegateQueue.addOperation { passed.open() }
        try passed.wait()
        #expect(notes.calls == ["response 200"])
        task.resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 200", "data", "complete"])
    }

    @Test func `US-30 a suspended task becomes a download task only when it is resumed`() throws {
        let server = try RangeServer(.continues)
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = TransferNotes(hook: { call, task in if call == "response 200" { task.suspend() } })
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url)
            task.taskDescription = "becomes a download"
            task.resume()
            loop.run { task.state == .suspended }
            loop.runInVain()
            let before = notes.calls
            task.resume()
            loop.runOut()
            return [before, notes.calls]
        }
        #expect(
            calls == [["response 200"], ["response 200", "became 2 0", "wrote", "file", "complete"]])
    }

    @Test func `US-32 cancel is followed by one end, for running and suspended and never resumed tasks`()
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let tasks = (0..<3).map { _ in session.dataTask(with: server.url()) }
        tasks[0].resume()
        tasks[1].resume()
        try waitFor("the requests") { server.requests.count == 2 ? () : nil }
        tasks[1].suspend()
        for task in tasks {
            task.cancel()
            task.cancel()
            #expect(task.state == .canceling || task.state == .completed)
        }
        try waitFor("the ends") { notes.completed == 3 ? () : nil }
        session.finishTasksAndInvalidate()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        #expect(notes.calls == ["complete -999", "complete -999", "complete -999", "invalid"])
        #expect(notes.errors.allSatisfy { $0.localizedDescription == "cancelled" })
        #expect(server.accepted == 2)
    }

    @Test func `US-33 after cancel in a call only the last call is made`() throws {
        let server = try echoServer()
        let calls = try onLoopThread { loop -> [String] in
            let notes = Notes(on: loop) { call, task in if call == "response 200" { task?.cancel() } }
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            session.dataTask(with: server.url()).resume()
            loop.runOut()
            return notes.calls
        }
        #expect(calls == ["response 200", "complete -999"])
    }

    @Test func `US-34 in the last call the task is completed and has its error`() throws {
        let seen = Box<[String]>([])
        let notes = Notes { call, task in
            if call.hasPrefix("complete") {
                seen.value.append(
                    "\(task?.state == .completed) \((task?.error as? URLError)?.errorCode ?? 0)")
            }
        }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: URL(fileURLWithPath: "/")).cancel()
        try waitFor("the end") { seen.value.isEmpty ? nil : () }
        #expect(seen.value == ["true -999"])
    }

    // MARK: - US-31

    @Test func `US-31 a resumed task whose server has closed in its body fails with -1005`() throws {
        let (mayClose, closed) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
            try mayClose.wait()
            peer.close()
            closed.open()
        }
        let calls = try Self.whileSuspended(server, mayGoOn: mayClose, hasGoneOn: closed) {
            loop, task, notes in
            let before = notes.calls
            task.resume()
            loop.runOut()
            return [before, notes.calls]
        }
        #expect(calls == [["response 200", "data"], ["response 200", "data", "complete -1005"]])
    }

    @Test func `US-31 a resumed request is sent again if that is allowed and the server has closed`() throws {
        let (arrived, mayClose, closed) = (Latch(), Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "\(peer.number)")
            guard peer.number == 0 else { return peer.waitForEnd() }
            _ = try peer.readRequest()
            arrived.open()
            try mayClose.wait()
            peer.close()
            closed.open()
        }
        let text = try onLoopThread { loop -> String in
            let notes = Notes(on: loop)
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            session.dataTask(with: server.url()).resume()
            loop.run { notes.completed == 1 }
            let task = session.dataTask(with: server.url())
            task.resume()
            loop.run { arrived.isOpen }
            task.suspend()
            mayClose.open()
            do { try closed.wait() } catch { Issue.record(error) }
            loop.runInVain()
            #expect(notes.completed == 1)
            task.resume()
            loop.run { notes.completed == 2 }
            session.invalidateAndCancel()
            loop.runOut()
            #expect(notes.errors.isEmpty)
            return notes.text
        }
        #expect(text == "01")
        #expect(server.requests.count == 3)
    }

    @Test func `US-31 a resumed download whose server has closed is continued`() throws {
        let (mayClose, hasClosed) = (Latch(), Latch())
        let server = try RangeServer(.closesLater(at: 100_000, when: mayClose, hasClosed: hasClosed))
        let notes = TransferNotes(hook: { call, task in
            if call == "wrote", task.countOfBytesReceived >= 100_000, !mayClose.isOpen { task.suspend() }
        })
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.downloadTask(with: server.url)
        task.resume()
        try waitFor("its suspension") { task.state == .suspended ? () : nil }
        mayClose.open()
        try hasClosed.wait()
        server.mode.value = .continues
        task.resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=100000-"])
        session.invalidateAndCancel()
    }

    @Test func `US-31 a resumed upload continues after the bytes that were sent`() throws {
        let body = Data((0..<8_000_000).map { UInt8(truncatingIfNeeded: $0 / 1000) })
        let mayRead = Latch()
        let isWhole = Box(false)
        let server = try TestServer { peer in
            let head = try peer.readHead()
            try mayRead.wait()
            isWhole.value = try peer.readBody(of: head) == body
            try peer.respond(body: "taken")
        }
        let notes = TransferNotes(hook: { call, task in
            if call == "sent", !mayRead.isOpen { task.suspend() }
        })
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        let task = session.uploadTask(with: request, from: body)
        task.resume()
        try waitFor("its suspension") { task.state == .suspended ? () : nil }
        mayRead.open()
        task.resume()
        try notes.waitForEnds()
        #expect(isWhole.value)
        #expect(notes.sent == [8_000_000, 8_000_000, 8_000_000])
        #expect(server.accepted == 1)
        session.invalidateAndCancel()
    }

    @Test func `US-31 a resumed WebSocket delivers the messages that have arrived meanwhile`() throws {
        let (maySend, sent) = (Latch(), Latch())
        let server = try socketServer { peer in
            try maySend.wait()
            for number in 1...3 { try peer.send(text: "\(number)") }
            sent.open()
            try peer.closeInTurn()
        }
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = SocketNotes()
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: server.socketURL)
            for _ in 1...3 { task.receive { notes.note($0.words) } }
            task.resume()
            loop.run { !notes.calls.isEmpty }
            task.suspend()
            maySend.open()
            do { try sent.wait() } catch { Issue.record(error) }
            loop.runInVain()
            let before = notes.calls
            task.resume()
            loop.run { notes.calls.count == 4 }
            task.cancel(with: .normalClosure, reason: nil)
            loop.runOut()
            return [before, notes.calls]
        }
        #expect(
            calls == [["open -"], ["open -", "text: 1", "text: 2", "text: 3", "close 1000 -", "complete"]])
    }

    /// The channel of the load has asked for a pass, in which it is to connect, when the task is suspended.
    @Test func `US-30 a task that is suspended before its connection is begun sends nothing`() throws {
        let server = try echoServer()
        let (before, after) = try onLoopThread { loop -> (Int, [String]) in
            let notes = Notes(on: loop)
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url())
            task.resume()
            // The second block is performed after the sources of the pass, in which the load begins.
            loop.perform { loop.perform { task.suspend() } }
            loop.run { task.state == .suspended }
            for _ in 0..<10 { loop.runInVain(for: 0) }
            // The server accepts connections in their order: one that the task has made would count by now.
            let other = session.dataTask(with: server.url())
            other.resume()
            loop.run { other.state == .completed }
            let accepted = server.accepted
            task.resume()
            loop.run { notes.completed == 2 }
            session.invalidateAndCancel()
            loop.runOut()
            return (accepted, notes.calls)
        }
        #expect(before == 1)
        #expect(after.filter { $0.hasPrefix("complete") } == ["complete", "complete"])
    }
}
