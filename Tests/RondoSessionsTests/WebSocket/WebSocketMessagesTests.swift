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

    // MARK: - WS-26

    /// Notes the texts that come, until the client closes.
    private static func noteTexts(of peer: TestPeer, in texts: Box<[String]>) throws {
        while true {
            let frame = try peer.readFrame()
            switch frame.first & 15 {
            case 1: texts.change { $0.append(frame.text) }
            case 8: return try peer.send(frame: 0x88, frame.payload)
            default: break
            }
        }
    }

    /// Nothing is sent before the handshake is over, for which the server waits.
    @Test func `WS-26 cancelling a send before any of it was sent withdraws the message`() async throws {
        let go = Latch()
        let texts = Box<[String]>([])
        let server = try socketServer(beforeAnswer: { try go.wait() }) { peer in
            try Self.noteTexts(of: peer, in: texts)
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        let shared = try #require(task.work.webSocket)
        let isWaiting: @Sendable () -> Bool = {
            // Of a copy.
            shared.state.withLock { state in
                var queues = state.queues
                return queues.takeOutgoing() != nil
            }
        }
        let sending = Task { try await task.send(.string("taken back")) }
        try waitFor("the message to wait") { isWaiting() ? () : nil }
        sending.cancel()
        let error = await #expect(throws: URLError.self) { try await sending.value }
        #expect(error?.code == .cancelled)
        #expect(!isWaiting())
        go.open()
        try await task.send(.string("behind it"))
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(texts.value == ["behind it"])
        #expect(notes.calls == ["open -", "close 1000 -", "complete"])
        session.invalidateAndCancel()
    }

    @Test func `WS-26 a message that was begun is withdrawn if the kernel has taken nothing`() throws {
        let mayEnd = Latch()
        let server = try socketServer { peer in
            try mayEnd.wait()
            peer.reset()
        }
        let isWithdrawn = try onLoopThread { loop in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: server.socketURL)
            task.resume()
            loop.run(.work) { !notes.calls.isEmpty }
            #expect(throws: Never.self) { try fillConnection(to: server) }
            let shared = task.work.webSocket
            let number = shared?.send(.text("taken back")) { _ in Issue.record("The handler was called.") }
            // The message is begun here.
            loop.runInVain(.work)
            let isWithdrawn = number.flatMap { shared?.cancelSend($0) }
            mayEnd.open()
            loop.run(.work) { notes.isComplete }
            session.invalidateAndCancel()
            return isWithdrawn
        }
        #expect(isWithdrawn == true)
    }

    @Test func `US-30 WS-26 a WebSocket whose handler suspends the task takes no further message`() throws {
        let (isStill, isCounted) = (Latch(), Latch())
        let frames = Box<[String]>([])
        let hasMore = Box(true)
        let server = try socketServer { peer in
            try isStill.wait()
            let first = try peer.readFrame().text
            hasMore.value = peer.hasUnread
            isCounted.open()
            let rest = try (3...5).map { _ in try peer.readFrame().text }
            frames.value = [first] + rest
            try peer.closeInTurn()
        }
        let handled = try onLoopThread { loop -> [[Int]] in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: server.socketURL)
            let handled = Box<[Int]>([])
            let shared = task.work.webSocket
            let numbers = (1...5).map { number in
                shared?.send(.text("\(number)")) { _ in
                    handled.change { $0.append(number) }
                    if number == 1 { task.suspend() }
                }
            }
            task.resume()
            loop.run(.work) { !handled.value.isEmpty }
            loop.runInVain(.work)
            isStill.open()
            #expect(throws: Never.self) { try isCounted.wait() }
            let before = handled.value
            let isWithdrawn = numbers[1].flatMap { shared?.cancelSend($0) }
            #expect(isWithdrawn == true)
            task.resume()
            loop.run(.work) { handled.value.count == 4 }
            task.cancel(with: .normalClosure, reason: nil)
            loop.run(.work) { notes.isComplete }
            return [before, handled.value]
        }
        #expect(handled == [[1], [1, 3, 4, 5]])
        #expect(!hasMore.value)
        #expect(frames.value == ["1", "3", "4", "5"])
    }

    @Test func `WS-24 a message that waits for room refers to the one before it`() throws {
        let (isRead, isFull, filled) = (Latch(), Latch(), Box(0))
        let lengths = Box<[Int]>([])
        let server = try socketServer(extra: "Sec-WebSocket-Extensions: permessage-deflate\r\n") { peer in
            let first = try peer.readFrame().payload.count
            isRead.open()
            try isFull.wait()
            _ = try peer.read(count: filled.value)
            lengths.value = [first, try peer.readFrame().payload.count]
            try peer.closeInTurn()
        }
        var generator: UInt64 = 1
        let text = (0..<500).map { _ in
            generator = generator &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return String(generator >> 32, radix: 16)
        }.joined()
        try onLoopThread { loop in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: server.socketURL)
            task.resume()
            let sent = Box(0)
            task.send(.string(text)) { _ in sent.change { $0 += 1 } }
            loop.run(.work) { sent.value == 1 }
            #expect(throws: Never.self) {
                try isRead.wait()
                filled.value = try fillConnection(to: server)
            }
            task.send(.string(text)) { _ in sent.change { $0 += 1 } }
            // The message finds no room here.
            loop.runInVain(.work)
            isFull.open()
            loop.run(.work) { sent.value == 2 }
            task.cancel(with: .normalClosure, reason: nil)
            loop.run(.work) { notes.isComplete }
            session.invalidateAndCancel()
        }
        try #require(lengths.value.count == 2)
        #expect(lengths.value[1] < lengths.value[0] / 4)
    }

    @Test func `WS-26 a message that is cancelled while it is being sent goes if none of it is taken`() {
        var queues = WebSocketQueues()
        let first = queues.add(.message(.text("first"))) { _ in }
        let second = queues.add(.message(.text("second"))) { _ in }
        let third = queues.add(.message(.text("third"))) { _ in }
        var sent: [Int?] = [queues.takeOutgoing()?.identifier]
        var released = [queues.beginWait() != nil]
        var isThere = [queues.endWait()]
        // Too late, unless the connection takes none of it.
        released.append(queues.cancelSend(first) != nil)
        released.append(queues.beginWait() != nil)
        isThere.append(queues.endWait())
        sent.append(queues.takeOutgoing()?.identifier)
        released.append(queues.beginWait() != nil)
        released.append(queues.cancelSend(second) != nil)
        isThere.append(queues.endWait())
        sent.append(queues.takeOutgoing()?.identifier)
        released.append(queues.cancelSend(third) != nil)
        released.append(queues.endSending() != nil)
        sent.append(queues.takeOutgoing()?.identifier)
        #expect(sent == [first, second, third, nil])
        #expect(released == [false, false, true, false, true, false, true])
        #expect(isThere == [true, false, false])
    }

    @Test func `WS-16 the pong of a ping that was cancelled answers the pings before it`() {
        var queues = WebSocketQueues()
        let pings = (0..<3).map { _ in queues.add(.ping) { _ in } }
        for _ in 0..<2 { _ = queues.takeOutgoing() }
        let isCancelled = queues.cancelSend(pings[1]) != nil
        // The third was not sent, so that this pong was not asked for.
        let counts = [queues.takePings(upTo: pings[2]).count, queues.takePings(upTo: pings[1]).count]
        let waiting = queues.takeSenders().count
        #expect(isCancelled && counts == [0, 1] && waiting == 1)
    }

    @Test func `WS-16 a cancelled ping is kept only while an earlier one waits`() {
        var queues = WebSocketQueues()
        let pings = (0..<4).map { _ in queues.add(.ping) { _ in } }
        for _ in pings { _ = queues.takeOutgoing() }
        var counts: [Int] = []
        for index in [1, 3, 0] {
            _ = queues.cancelSend(pings[index])
            counts.append(queues.pingCount)
        }
        let isCancelledAgain = queues.cancelSend(pings[3]) != nil
        // It is the answer to the third, behind which the fourth was cancelled.
        let answered = queues.takePings(upTo: pings[2]).count
        counts.append(queues.pingCount)
        #expect(!isCancelledAgain && answered == 1 && counts == [4, 4, 2, 0])
    }

    @Test func `WS-16 a pong with the number of a message between two pings is an unasked one`() {
        var queues = WebSocketQueues()
        let numbers = [WebSocketQueues.Outgoing.ping, .message(.text("x")), .ping].map { what in
            queues.add(what) { _ in }
        }
        while queues.takeOutgoing() != nil { _ = queues.endSending() }
        let counts = [numbers[1], numbers[0], numbers[2], numbers[2]].map { queues.takePings(upTo: $0).count }
        #expect(counts == [0, 1, 1, 0])
    }

    @Test func `WS-26 a receive whose message has come gets it although it is cancelled`() async throws {
        let server = try socketServer { peer in
            for text in ["one", "two"] { try peer.send(text: text) }
            try peer.closeInTurn()
        }
        let notes = SocketNotes()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: queue)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        let shared = try #require(task.work.webSocket)
        let waiting: @Sendable () -> Int = {
            // Of a copy.
            shared.state.withLock { state in
                var queues = state.queues
                return (0..<3).count { _ in queues.takeMessage() != nil }
            }
        }
        try waitFor("the messages") { waiting() == 2 ? () : nil }
        // The call that hands the message over waits for the queue.
        queue.isSuspended = true
        let receiving = Task { try await task.receive() }
        try waitFor("the first message to be taken") { waiting() == 1 ? () : nil }
        receiving.cancel()
        queue.isSuspended = false
        #expect(try await receiving.value.words == "text: one")
        #expect(try await task.receive().words == "text: two")
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        session.invalidateAndCancel()
    }

    /// The first of two handlers has the queue run what comes behind it before it returns.
    @Test func `US-19 WS-9 on a concurrent queue the answers after the end come one at a time`() throws {
        let server = try socketServer { peer in
            for text in ["one", "two"] { try peer.send(text: text) }
            try peer.send(close: 1000)
            _ = try peer.readFrame()
        }
        let notes = SocketNotes()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 4
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: queue)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        try notes.waitForEnd()
        let (log, bothWait) = (EventLog(), Latch())
        task.receive { result in
            log.note("begin \(result.words)")
            #expect(throws: Never.self) {
                try bothWait.wait()
                for _ in 0..<3 {
                    let passed = Latch()
                    queue.addOperation { passed.open() }
                    try passed.wait()
                }
            }
            log.note("end \(result.words)")
        }
        task.receive { log.note("begin \($0.words)") }
        bothWait.open()
        try waitFor("both handlers") { log.entries.count == 3 ? () : nil }
        #expect(log.entries == ["begin text: one", "end text: one", "begin text: two"])
        session.invalidateAndCancel()
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
            codes.change { $0.append((error as? URLError)?.errorCode ?? 0) }
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
                results.change { $0.append((error as? URLError)?.errorCode ?? 0) }
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
        for _ in 0..<4 { task.receive { result in words.change { $0.append(result.words) } } }
        try notes.waitForEnd()
        try waitFor("four answers") { words.value.count == 4 ? () : nil }
        #expect(words.value.prefix(2).allSatisfy { $0 == "text: " + String(repeating: "x", count: 600) })
        #expect(words.value.last == "error -1005")
        session.invalidateAndCancel()
    }
}
