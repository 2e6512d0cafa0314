import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

import class Rondo.URLSession
import class Rondo.URLSessionConfiguration
import class Rondo.URLSessionWebSocketTask

@testable import RondoCore
@testable import RondoSessions

/// The sequence of messages that is let go before its end, and handlers that are let go.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct WebSocketMessagesTests {
    enum Leaving: CaseIterable {
        case byBreak, byCancellation, withoutIterating
    }

    /// Sends two messages, notes what the client's close frame says, and answers it.
    private static func server(_ closed: Box<[UInt8]?>) throws -> TestServer {
        try socketServer { peer in
            try peer.send(text: "one")
            try peer.send(text: "two")
            var frame = try peer.readFrame()
            // A message first, where the client sends one.
            if frame.first == 0x81 { frame = try peer.readFrame() }
            closed.value = frame.first == 0x88 ? frame.payload : []
            try peer.send(frame: 0x88, frame.payload)
        }
    }

    /// Leaves the messages of a new task, which nothing holds when this returns.
    private static func leave(_ leaving: Leaving, _ session: URLSession, _ url: URL) async throws {
        let task = session.webSocketTask(with: url)
        task.resume()
        switch leaving {
        case .byBreak:
            for try await message in task.messages {
                #expect(message.words == "text: one")
                break
            }
        case .byCancellation:
            let begun = Latch()
            let reading = Task {
                for try await _ in task.messages { begun.open() }
            }
            try await Self.wait(for: begun)
            reading.cancel()
            await #expect(throws: URLError.self) { try await reading.value }
        case .withoutIterating:
            #expect(try await task.receive().words == "text: one")
            _ = task.messages.makeAsyncIterator()
        }
        #expect(task.closeCode == .invalid)
    }

    private static func wait(for latch: Latch) async throws {
        while !latch.isOpen { await Task.yield() }
    }

    @Test(arguments: Leaving.allCases)
    func `WS-27 releasing the sequence and its task closes the WebSocket with 1001`(_ leaving: Leaving)
        async throws
    {
        let closed = Box<[UInt8]?>(nil)
        let server = try Self.server(closed)
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        try await Self.leave(leaving, session, server.socketURL)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1001 -", "complete"])
        #expect(closed.value == [0x03, 0xE9])
        #expect(await session.allTasks.isEmpty)
        session.invalidateAndCancel()
    }

    @Test func `WS-27 on a run loop the close frame is sent in the session's mode`() throws {
        let closed = Box<[UInt8]?>(nil)
        let server = try Self.server(closed)
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            var task: URLSessionWebSocketTask? = session.webSocketTask(with: server.socketURL)
            task?.resume()
            loop.run(.work) { !notes.calls.isEmpty }
            _ = task?.messages
            task = nil
            loop.runInVain(.other)
            let before = notes.calls
            loop.run(.work) { notes.isComplete }
            return [before, notes.calls]
        }
        #expect(calls == [["open -"], ["open -", "close 1001 -", "complete"]])
    }

    @Test func `WS-27 a task that the program holds stays open when its sequence is released`() async throws {
        let closed = Box<[UInt8]?>(nil)
        let server = try Self.server(closed)
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        for try await _ in task.messages { break }
        #expect(await session.allTasks == [task])
        #expect(try await task.receive().words == "text: two")
        try await task.send(.string("still here"))
        #expect(closed.value == nil && task.closeCode == .invalid)
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1000 -", "complete"])
        #expect(closed.value == [0x03, 0xE8])
        session.invalidateAndCancel()
    }

    /// A task for which two messages wait: it has answered the ping behind them.
    private static func taskWithTwoMessages(
        _ notes: SocketNotes
    ) async throws -> (URLSession, URLSessionWebSocketTask) {
        let haveArrived = Latch()
        let server = try socketServer { peer in
            try peer.send(text: "one")
            try peer.send(text: "two")
            try peer.send(frame: 0x89)
            #expect(try peer.readFrame().first == 0x8A)
            haveArrived.open()
            try peer.closeInTurn()
        }
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        try await becomes("both messages") { haveArrived.isOpen }
        return (session, task)
    }

    @Test func `WS-27 two messages that have come before the first is asked for come in order`() async throws
    {
        let notes = SocketNotes()
        let (session, task) = try await Self.taskWithTwoMessages(notes)
        var messages = task.messages.makeAsyncIterator()
        let words = [try await messages.next()?.words, try await messages.next()?.words]
        #expect(words == ["text: one", "text: two"])
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        session.invalidateAndCancel()
    }

    @Test func `WS-26 WS-27 a Swift task that is cancelled between two messages does not take the second`()
        async throws
    {
        let notes = SocketNotes()
        let (session, task) = try await Self.taskWithTwoMessages(notes)
        let words = await Task {
            var words: [String] = []
            do {
                for try await message in task.messages {
                    words.append(message.words)
                    withUnsafeCurrentTask { $0?.cancel() }
                }
                Issue.record("the messages have ended")
            } catch { #expect((error as? URLError)?.code == .cancelled) }
            return words
        }.value
        #expect(words == ["text: one"])
        #expect(try await task.receive().words == "text: two")
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        session.invalidateAndCancel()
    }

    @Test func `WS-27 releasing the sequence and its task before the handshake's end cancels the task`()
        async throws
    {
        let go = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            go.open()
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        try await {
            let task = session.webSocketTask(with: server.socketURL)
            task.resume()
            try await Self.wait(for: go)
            _ = task.messages
        }()
        try notes.waitForEnd()
        #expect(notes.calls == ["complete -999"])
        session.finishTasksAndInvalidate()
    }

    // MARK: - WS-28

    enum Ending: CaseIterable {
        case serversClose, programsClose, cancellation, invalidation, reset, beforeTheHandshake, resourceTime
    }

    @Test(arguments: Ending.allCases)
    func `WS-28 whatever ends the task, each handler is called once, and no object is left`(
        _ ending: Ending
    ) throws {
        let before = LiveObject.census?[.sessionTask] ?? 0
        let server = try socketServer { peer in
            switch ending {
            case .serversClose:
                try peer.send(close: 4001)
                _ = try? peer.readFrame()
            case .reset: peer.reset()
            default: try peer.closeInTurn()
            }
        }
        let names = (1...3).flatMap { ["receive \($0)", "send \($0)", "ping \($0)"] }
        let notes = SocketNotes()
        let heard = EventLog()
        try {
            let configuration = URLSessionConfiguration.ephemeral
            if case .resourceTime = ending { configuration.timeoutIntervalForResource = 0.2 }
            let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
            let task = session.webSocketTask(with: server.socketURL)
            for number in 1...3 {
                task.receive { _ in heard.note("receive \(number)") }
                task.send(.string("x")) { _ in heard.note("send \(number)") }
                task.sendPing { _ in heard.note("ping \(number)") }
            }
            if case .beforeTheHandshake = ending { task.cancel() } else { task.resume() }
            switch ending {
            case .serversClose, .reset, .beforeTheHandshake, .resourceTime: break
            case .programsClose, .cancellation, .invalidation:
                try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
                if case .programsClose = ending { task.cancel(with: .normalClosure, reason: nil) }
                if case .cancellation = ending { task.cancel() }
            }
            if case .invalidation = ending {
                session.invalidateAndCancel()
            } else {
                session.finishTasksAndInvalidate()
            }
            try notes.waitForEnd()
            // Those that come too late.
            task.receive { _ in heard.note("late receive") }
            task.send(.string("x")) { heard.note("late send, \($0 == nil ? "sent" : "refused")") }
            task.sendPing { heard.note("late ping, \($0 == nil ? "sent" : "refused")") }
        }()
        let late = ["late receive", "late send, refused", "late ping, refused"]
        try waitFor("all handlers") { heard.entries.count == names.count + late.count ? () : nil }
        #expect(heard.entries.sorted() == (names + late).sorted())
        try waitFor("the task to go") { LiveObject.census?[.sessionTask] ?? 0 <= before ? () : nil }
        #expect(notes.calls.count { $0.hasPrefix("complete") } == 1)
    }

    @Test func `WS-28 a WebSocket that is cancelled does not open while the load is not told yet`() throws {
        let mayAnswer = Latch()
        let server = try socketServer(beforeAnswer: { try mayAnswer.wait() }) { peer in
            try peer.send(text: "one")
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        let received = EventLog()
        task.receive { received.note($0.words) }
        task.resume()
        try waitFor("the request") { server.requests.isEmpty ? nil : () }
        let shared = try #require(task.work.webSocket)
        // The first step of `cancel()`.
        #expect(!shared.close(with: 0, reason: nil))
        mayAnswer.open()
        // The connection is handed over in the pass in which this comes.
        try waitFor("the handshake") { shared.state.withLock { $0.load == nil } ? nil : () }
        try #require(task.work.engine?.schedule.servingLoop).waitUntilAsleep()
        task.cancel()
        try notes.waitForEnd()
        #expect(received.entries == ["error -999"])
        #expect(notes.calls == ["complete -999"])
        session.invalidateAndCancel()
    }

    @Test func `WS-8 WS-28 the resource timeout fails a message that is being sent, by one call`() throws {
        let isOver = Latch()
        let server = try socketServer { _ in try isOver.wait() }
        let notes = SocketNotes()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = 0.5
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        let codes = Box<[Int]>([])
        // More than the kernel takes.
        task.send(.data(Data(count: 32 << 20))) { error in
            codes.mutate { $0.append((error as? URLError)?.errorCode ?? 0) }
        }
        task.resume()
        try notes.waitForEnd()
        try waitFor("the handler") { codes.value.isEmpty ? nil : () }
        #expect(codes.value == [-1001])
        #expect(notes.calls.last == "complete -1001")
        isOver.open()
        session.invalidateAndCancel()
    }

    @Test func `WS-28 on a broken connection sends fail although messages wait to be received`() throws {
        let mayBreak = Latch()
        let server = try socketServer { peer in
            for _ in 0..<3 { try peer.send(text: String(repeating: "x", count: 600)) }
            try mayBreak.wait()
            peer.reset()
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.maximumMessageSize = 1000
        task.resume()
        let shared = try #require(task.work.webSocket)
        try waitFor("two messages") { shared.state.withLock { $0.queues.takesMessages } ? nil : () }
        mayBreak.open()
        let (results, pong) = (Box<[Int]>([]), Box<Int?>(nil))
        let send = {
            let before = results.value.count
            task.send(.string("text")) { error in
                results.mutate { $0.append((error as? URLError)?.errorCode ?? 0) }
            }
            try waitFor("the end of a send") { results.value.count > before ? () : nil }
        }
        while results.value.last ?? 0 == 0 { try send() }
        try send()
        task.sendPing { error in pong.value = (error as? URLError)?.errorCode }
        try waitFor("the end of a ping") { pong.value }
        #expect(results.value.suffix(2) == [-1005, -1005])
        #expect(pong.value == -1005)
        // Nothing that had come is lost.
        let words = Box<[String]>([])
        for _ in 0..<4 { task.receive { result in words.mutate { $0.append(result.words) } } }
        try notes.waitForEnd()
        try waitFor("four answers") { words.value.count == 4 ? () : nil }
        #expect(words.value.prefix(2).allSatisfy { $0 == "text: " + String(repeating: "x", count: 600) })
        #expect(words.value.last == "error -1005")
        session.invalidateAndCancel()
    }
}
