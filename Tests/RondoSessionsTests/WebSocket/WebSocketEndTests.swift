import Rondo
import RondoTestSupport
import RondoTesting
import Testing

/// Frames by hand, and every way in which a WebSocket ends.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct WebSocketEndTests {
    private static let manyLooks = 2000

    private func begin(_ server: TestServer, _ notes: SocketNotes) -> URLSessionWebSocketTask {
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        return task
    }

    struct Broken: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let close: UInt16
        let code: Int
        var testDescription: String { name }
    }

    static let broken = [
        Broken(name: "masked", bytes: [0x81, 0x81, 0, 0, 0, 0, 65], close: 1002, code: -1011),
        Broken(name: "reserved bit", bytes: [0xA1, 0], close: 1002, code: -1011),
        Broken(name: "unknown opcode", bytes: [0x83, 0], close: 1002, code: -1011),
        Broken(name: "continuation of nothing", bytes: [0x80, 0], close: 1002, code: -1011),
        Broken(name: "message in a message", bytes: [0x01, 1, 65, 0x81, 0], close: 1002, code: -1011),
        Broken(name: "ping in fragments", bytes: [0x09, 0], close: 1002, code: -1011),
        Broken(name: "long length", bytes: [0x81, 126, 0, 1, 65], close: 1002, code: -1011),
        Broken(name: "top bit", bytes: [0x82, 127, 128, 0, 0, 0, 0, 0, 0, 1], close: 1002, code: -1011),
        Broken(name: "not UTF-8", bytes: [0x01, 1, 0xFF], close: 1007, code: -1011),
        Broken(name: "close of one byte", bytes: [0x88, 1, 3], close: 1002, code: -1011),
        Broken(name: "close 1005", bytes: [0x88, 2, 3, 237], close: 1002, code: -1011),
        Broken(name: "close reason", bytes: [0x88, 3, 3, 232, 0xFF], close: 1007, code: -1011),
        Broken(
            name: "too long", bytes: [0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0], close: 1009, code: -1103),
    ]

    @Test(arguments: broken)
    func `WS-13 a protocol error is answered by a close frame; whole messages before it are delivered`(
        _ broken: Broken
    ) throws {
        let closes = Box<[UInt8]>([])
        let server = try socketServer { peer in
            try peer.send(text: "whole")
            try peer.send(broken.bytes)
            closes.value = try peer.readFrame().payload
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        for _ in 0..<2 { task.receive { notes.note($0.words) } }
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "text: whole", "error \(broken.code)", "complete \(broken.code)"])
        #expect(closes.value == [UInt8(broken.close >> 8), UInt8(broken.close & 255)])
        #expect(task.closeCode.rawValue == Int(broken.close))
    }

    @Test func `US-30 WS-22 the time for the closing handshake does not begin while the task is suspended`()
        throws
    {
        let answer = Box<[UInt8]>([])
        let server = try socketServer { peer in
            // A message and a close frame that arrive together.
            try peer.send([0x81, 1, 65, 0x88, 2, 3, 232])
            answer.value = try peer.readFrame().payload
        }
        let (url, notes) = (server.socketURL, SocketNotes())
        try onHeldLoop { loop, clock in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.receive { result in
                notes.note(result.words)
                task.suspend()
            }
            task.resume()
            loop.passUntil { notes.calls.count == 2 }
            loop.pass(10, by: clock)
            for _ in 1...3 { loop.runInVain(for: 0) }
            task.resume()
            loop.passUntil { notes.isComplete }
        }
        #expect(notes.calls == ["open -", "text: A", "close 1000 -", "complete"])
        #expect(answer.value == [3, 232])
    }

    @Test func `WS-11 and WS-24 a deflate bomb is stopped at the limit`() throws {
        // A megabyte of zeros again and again, with the context of the one before: 1,000 : 1.
        let bomb = try TestServerProcess.run([
            "/usr/bin/python3", "-c",
            "import zlib;c=zlib.compressobj(9,8,-15);d=c.compress(bytes(64<<20))+c.flush(2);print(d[:-4].hex())",
        ])
        let digits = Array(bomb.utf8.filter { $0 > 32 })
        let bytes = stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)!
        }
        let server = try socketServer(extra: "Sec-WebSocket-Extensions: permessage-deflate\r\n") { peer in
            try peer.send(frame: 0xC2, bytes)
            #expect(try peer.readFrame().payload == [0x03, 0xF1])
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.receive { notes.note($0.words) }
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "error -1103", "complete -1103"])
    }

    @Test(arguments: [false, true])
    func `WS-21 a connection that ends without a close frame is 1006 and -1005`(byReset: Bool) throws {
        let server = try socketServer { peer in
            #expect(try peer.readFrame().text == "now")
            try peer.send([0x81, 5, 65])
            if byReset { peer.reset() }
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.send(.string("now")) { _ in }
        task.receive { notes.note($0.words) }
        task.sendPing { notes.note("ping \((($0 ?? URLError(.unknown)) as NSError).code)") }
        try notes.waitForEnd()
        #expect(Set(notes.calls) == ["open -", "error -1005", "ping -1005", "complete -1005"])
        #expect(notes.calls.count == 4)
        #expect(task.closeCode == .abnormalClosure)
    }

    @Test
    func `WS-17 and WS-18 the program closes: earlier messages are sent, waiting operations fail with -999`()
        throws
    {
        let (frames, mayAnswer) = (Box<[ClientFrame]>([]), Latch())
        let server = try socketServer { peer in
            let close = try peer.readFrames(3, into: frames)
            try mayAnswer.wait()
            try peer.send(text: "too late")
            try peer.send(frame: 0x88, close.payload)
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        task.receive { notes.note($0.words) }
        for word in ["a", "b"] { task.send(.string(word)) { notes.note($0 == nil ? "sent" : "not sent") } }
        task.cancel(with: .init(rawValue: 4000)!, reason: Data(String(repeating: "ü", count: 100).utf8))
        #expect(task.state == .canceling)
        task.send(.string("c")) { notes.note("late \((($0 ?? URLError(.unknown)) as NSError).code)") }
        mayAnswer.open()
        try notes.waitForEnd()
        try #require(frames.value.map(\.first) == [0x81, 0x81, 0x88])
        #expect(frames.value[2].payload.count == 2 + 122)
        #expect(notes.calls.filter { $0 == "sent" }.count == 2)
        #expect(notes.calls.contains("error -999"))
        #expect(notes.calls.contains("late -999"))
        #expect(notes.calls.last == "complete")
        #expect(notes.calls.count { $0.hasPrefix("close 4000") } == 1)
        #expect(task.error == nil)
    }

    /// A handler is called on the loop in the middle of a look at the WebSocket, which goes on to what is to be sent.
    @Test(arguments: [false, true])
    func `WS-18 what was sent goes before the close frame of a close that comes in the middle of a look`(
        byAnotherThread: Bool
    ) throws {
        let frames = Box<[ClientFrame]>([])
        let server = try socketServer { peer in
            try peer.send(text: "now")
            try peer.send(frame: 0x88, try peer.readFrames(3, into: frames).payload)
        }
        let (url, notes) = (server.socketURL, SocketNotes())
        try onLoopThread { loop in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.receive { result in
                notes.note(result.words)
                for word in ["a", "b"] {
                    task.send(.string(word)) { notes.note($0 == nil ? "sent" : "not sent") }
                }
                let isClosed = Latch()
                let close: @Sendable () -> Void = {
                    task.cancel(with: .goingAway, reason: nil)
                    isClosed.open()
                }
                if byAnotherThread { Thread.detachNewThread(close) } else { close() }
                #expect(throws: Never.self) { try isClosed.wait() }
            }
            task.resume()
            loop.runOut()
        }
        #expect(notes.calls == ["open -", "text: now", "sent", "sent", "close 1001 -", "complete"])
        #expect(frames.value.map(\.first) == [0x81, 0x81, 0x88])
        #expect(frames.value.prefix(2).map(\.text) == ["a", "b"])
    }

    @Test func `WS-18 a bad frame behind the message on which the program closes is not the task's error`()
        throws
    {
        let frames = Box<[ClientFrame]>([])
        let server = try socketServer { peer in
            // They arrive together. The second has an unknown opcode.
            try peer.send([0x81, 1, 65, 0x83, 0])
            _ = try peer.readFrames(1, into: frames)
        }
        let (url, notes) = (server.socketURL, SocketNotes())
        try onLoopThread { loop in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.receive { result in
                notes.note(result.words)
                task.cancel(with: .goingAway, reason: nil)
            }
            task.resume()
            loop.runOut()
            #expect(task.error == nil && task.closeCode == .goingAway)
        }
        #expect(notes.calls == ["open -", "text: A", "close 1001 -", "complete"])
        #expect(frames.value == [ClientFrame(first: 0x88, payload: [3, 233])])
    }

    @Test func `WS-17 the task waits two seconds for a server that never answers the close frame`() throws {
        let server = try socketServer { $0.waitForEnd() }
        let notes = SocketNotes()
        let task = begin(server, notes)
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        task.suspend()
        task.cancel(with: .goingAway, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1001 -", "complete"])
    }

    /// Sends as many messages of 100,000 bytes, which no socket holds at once, and closes; 1.5 s go by.
    private static func sendAndClose(
        _ task: URLSessionWebSocketTask, count: Int, counting sent: Box<Int>, _ loop: RunLoop,
        _ clock: ManualClock
    ) {
        let piece = Data(count: 100_000)
        for _ in 0..<count {
            task.send(.data(piece)) { error in if error == nil { sent.mutate { $0 += 1 } } }
        }
        task.cancel(with: .goingAway, reason: nil)
        for _ in 1...3 { loop.runInVain(for: 0) }
        loop.pass(1.5, by: clock)
    }

    @Test func `WS-17 a slow server gets all that was sent before the close frame, however long it takes`()
        throws
    {
        let closes = Box<[UInt8]>([])
        let (mayBegin, mayGoOn) = (Latch(), Latch())
        let server = try socketServer { peer in
            let readMessages = { (count: Int) in
                for _ in 0..<count { _ = try peer.read(count: peer.readFrameHead().length) }
            }
            try mayBegin.wait()
            try readMessages(200)
            try mayGoOn.wait()
            try readMessages(200)
            let close = try peer.readFrame()
            closes.value = [close.first] + close.payload
            try peer.send(frame: 0x88, close.payload)
        }
        let (url, notes, sent) = (server.socketURL, SocketNotes(), Box(0))
        try onHeldLoop { loop, clock in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.resume()
            loop.passUntil { !notes.calls.isEmpty }
            Self.sendAndClose(task, count: 400, counting: sent, loop, clock)
            mayBegin.open()
            loop.passUntil { sent.value >= 200 }
            loop.pass(1.5, by: clock)
            mayGoOn.open()
            loop.passUntil { notes.isComplete }
        }
        #expect(sent.value == 400)
        #expect(closes.value == [0x88, 3, 233])
        #expect(notes.calls == ["open -", "close 1001 -", "complete"])
    }

    @Test(arguments: [false, true])
    func `WS-17 US-74 a slow server has two seconds more once the program asks for the end again`(
        byInvalidation: Bool
    ) throws {
        let mayGoOn = [Latch(), Latch(), Latch()]
        let server = try socketServer { peer in
            for latch in mayGoOn {
                try latch.wait()
                for _ in 0..<150 { _ = try peer.read(count: peer.readFrameHead().length) }
            }
        }
        let (url, notes, sent) = (server.socketURL, SocketNotes(), Box(0))
        let hasEnded = try onHeldLoop { loop, clock -> Bool in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.resume()
            loop.passUntil { !notes.calls.isEmpty }
            Self.sendAndClose(task, count: 600, counting: sent, loop, clock)
            mayGoOn[0].open()
            loop.passUntil { sent.value >= 150 }
            if byInvalidation { session.invalidateAndCancel() } else { task.cancel() }
            loop.pass(1.5, by: clock)
            mayGoOn[1].open()
            loop.passUntil { sent.value >= 300 || notes.isComplete }
            loop.pass(1, by: clock)
            for _ in 1...10 { loop.runInVain(for: 0) }
            let hasEnded = notes.isComplete
            mayGoOn[2].open()
            server.stop()
            loop.passUntil { notes.isComplete }
            return hasEnded
        }
        #expect(hasEnded)
        #expect(sent.value < 600)
        #expect(notes.calls == ["open -", "close 1001 -", "complete"])
    }

    @Test func `WS-17 pongs after the close frame do not prolong the wait for the server's`() throws {
        let (hasClose, hasPong) = (Latch(), Latch())
        let mayPing = Latch()
        let server = try socketServer { peer in
            #expect(try peer.readFrame().first == 0x88)
            hasClose.open()
            try mayPing.wait()
            try peer.send(frame: 0x89)
            #expect(try peer.readFrame().first == 0x8A)
            hasPong.open()
            peer.waitForEnd()
        }
        let (url, notes) = (server.socketURL, SocketNotes())
        try onHeldLoop { loop, clock in
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: url)
            task.resume()
            loop.passUntil { !notes.calls.isEmpty }
            task.cancel(with: .goingAway, reason: nil)
            loop.passUntil { hasClose.isOpen }
            loop.pass(1.5, by: clock)
            mayPing.open()
            loop.passUntil { hasPong.isOpen }
            loop.pass(1.5, by: clock)
            loop.passUntil { notes.isComplete }
        }
        #expect(notes.calls == ["open -", "close 1001 -", "complete"])
    }

    @Test func `WS-10 a server is held back while the program does not receive`() throws {
        let sent = Box(0)
        let piece = [UInt8](repeating: 1, count: 100_000)
        let server = try socketServer { peer in
            for number in 1...400 {
                try peer.send(frame: 0x82, piece)
                sent.value = number
            }
            try peer.send(close: 1000)
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        // It has stopped when nothing has changed for many looks; forty megabytes fit into no socket.
        var (last, looks) = (0, 0)
        try waitFor("the server to be held back") {
            looks = sent.value == last && last > 0 ? looks + 1 : 0
            last = sent.value
            return looks > Self.manyLooks ? () : nil
        }
        #expect(sent.value < 400)
        let received = Box(0)
        @Sendable func receive() {
            task.receive { result in
                guard case .success(.data(let data)) = result else { return notes.note(result.words) }
                received.value += data.count
                receive()
            }
        }
        receive()
        try notes.waitForEnd()
        #expect(received.value == 40_000_000)
        // The last receive may have been asked for after the close frame came.
        #expect(notes.calls.filter { $0 != "error -1005" } == ["open -", "close 1000 -", "complete"])
        #expect(notes.calls.count == 4)
    }

    @Test func `WS-26 cancelled receives lose no message`() async throws {
        // Each message takes several changes of threads, which are slow on a busy machine.
        let count = 300
        let server = try socketServer { peer in
            for number in 0..<count { try peer.send(text: "\(number)") }
            try peer.closeInTurn()
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        var received: [String] = []
        while received.count < count {
            let waiting = Task { try await task.receive() }
            if received.count % 3 == 0 { waiting.cancel() }
            do {
                received.append(try await waiting.value.words)
            } catch {
                #expect((error as? URLError)?.code == .cancelled)
                received.append(try await task.receive().words)
            }
        }
        #expect(received == (0..<count).map { "text: \($0)" })
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
    }

    @Test func `WS-28 handlers of a session that is invalidated are each called once`() throws {
        let server = try socketServer { try $0.closeInTurn() }
        let calls = Box<[String]>([])
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let (open, never) = (
            session.webSocketTask(with: server.socketURL), session.webSocketTask(with: server.socketURL)
        )
        open.resume()
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        for (name, task) in [("open", open), ("never", never)] {
            task.receive { calls.value.append("\(name) \($0.words)") }
            task.sendPing { _ in calls.value.append("\(name) ping") }
        }
        session.invalidateAndCancel()
        try waitFor("the handlers") { calls.value.count == 4 ? () : nil }
        #expect(Set(calls.value).isSuperset(of: ["open error -999", "never error -999"]))
        let late = session.webSocketTask(with: server.socketURL)
        late.receive { calls.value.append("late \($0.words)") }
        try waitFor("the handler of a late task") { calls.value.last == "late error -999" ? () : nil }
        #expect(calls.value.count == 5)
    }
}
