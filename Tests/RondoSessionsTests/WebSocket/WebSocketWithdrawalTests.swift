import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

import class Rondo.URLSession
import class Rondo.URLSessionConfiguration
import class Rondo.URLSessionWebSocketTask

@testable import RondoCore
@testable import RondoSessions

/// Messages, pings and receives that are withdrawn, or have to wait.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct WebSocketWithdrawalTests {
    /// Notes the texts that come, until the client closes.
    private static func noteTexts(of peer: TestPeer, in texts: Box<[String]>) throws {
        while true {
            let frame = try peer.readFrame()
            switch frame.first & 15 {
            case 1: texts.mutate { $0.append(frame.text) }
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
                    handled.mutate { $0.append(number) }
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
            task.send(.string(text)) { _ in sent.mutate { $0 += 1 } }
            loop.run(.work) { sent.value == 1 }
            #expect(throws: Never.self) {
                try isRead.wait()
                filled.value = try fillConnection(to: server)
            }
            task.send(.string(text)) { _ in sent.mutate { $0 += 1 } }
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
}
