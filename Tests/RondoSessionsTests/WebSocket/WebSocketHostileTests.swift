import Rondo
import RondoTestSupport
import Testing

/// Servers that send without end, or never end: what a WebSocket keeps of them, and how it gets rid of them.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct WebSocketHostileTests {
    /// A test may add this many bytes to the process's memory: far fewer than its server sends.
    private static let memory = 24 << 20

    private func begin(
        _ server: TestServer, _ notes: SocketNotes, _ configuration: URLSessionConfiguration = .ephemeral
    ) -> URLSessionWebSocketTask {
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        return task
    }

    // MARK: - Without end

    /// Ways to send a message of a gigabyte.
    enum Gigabyte: CaseIterable, Sendable {
        case oneFrame, fragments, compressed

        var extensions: String {
            self == .compressed ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : ""
        }

        /// Sends until the client has said something, which is its close frame, or has left.
        func send(to peer: TestPeer) throws {
            switch self {
            case .oneFrame:
                try peer.send([0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0])
                for _ in 0..<16_384 where !peer.hasUnread { try peer.send(piece) }
            case .fragments:
                try peer.send([0x01, 0])
                for _ in 0..<16_384 where !peer.hasUnread { try peer.send(frame: 0x00, piece) }
            case .compressed:
                // Each fragment is a block that is stored as it is: three bits, the length and its complement.
                try peer.send([0x41, 0])
                let block = [0x00, 0xFF, 0xFF, 0x00, 0x00] + [UInt8](repeating: 97, count: 65_535)
                for _ in 0..<16_384 where !peer.hasUnread { try peer.send(frame: 0x00, block) }
            }
        }
    }

    @Test(arguments: Gigabyte.allCases)
    func `WS-11 a text of a gigabyte is refused at the limit, and is not kept`(_ gigabyte: Gigabyte) throws {
        let close = Box<[UInt8]>([])
        let server = try socketServer(extra: gigabyte.extensions) { peer in
            try gigabyte.send(to: peer)
            close.value = try peer.readFrame().payload
        }
        let before = try memoryInUse()
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.receive { notes.note($0.words) }
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "error -1103", "complete -1103"])
        #expect(task.closeCode == .messageTooBig)
        #expect(close.value == [0x03, 0xF1])
        // An eighth of what was sent; a message of the greatest length, and its array as it grows, are a part of it.
        #expect(try memoryInUse() - before < 128 << 20)
    }

    @Test func `WS-9 empty fragments take no memory, however many arrive`() throws {
        let server = try socketServer { peer in
            try peer.send([0x01, 0])
            let fragments = [UInt8](repeating: 0, count: 2 * 10_000)
            for _ in 0..<100 { try peer.send(fragments) }
            try peer.send([0x80, 4] + Array("done".utf8))
            try peer.closeInTurn()
        }
        let before = try memoryInUse()
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.receive { notes.note($0.words) }
        try waitFor("the message") { notes.calls.count == 2 ? () : nil }
        #expect(try memoryInUse() - before < Self.memory)
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "text: done", "close 1000 -", "complete"])
    }

    @Test
    func `WS-10 a server that sends endless empty messages is held back while the program does not receive`()
        throws
    {
        let sent = Box(0)
        let server = try socketServer { peer in
            let messages = [UInt8](repeating: 0, count: 65_536).indices.map { $0 % 2 == 0 ? UInt8(0x82) : 0 }
            while true {
                try peer.send(messages)
                sent.value += 1
            }
        }
        let before = try memoryInUse()
        let notes = SocketNotes()
        let task = begin(server, notes)
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        // It has stopped when nothing has changed for many looks.
        var (last, looks) = (0, 0)
        try waitFor("the server to be held back") {
            looks = sent.value == last && last > 0 ? looks + 1 : 0
            last = sent.value
            return looks > 2000 ? () : nil
        }
        #expect(try memoryInUse() - before < Self.memory)
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1000 -", "complete"])
    }

    @Test func `WS-15 of endless pings only the last waits for its pong, and reading goes on`() throws {
        let count = 200_000
        let mayRead = Latch()
        let pongs = Box((count: 0, last: 0))
        let server = try socketServer { peer in
            // More than sockets take: not one pong is read before all pings are sent.
            for start in stride(from: 0, to: count, by: 500) {
                var pings: [UInt8] = []
                for number in start..<start + 500 {
                    pings += [0x89, 104] + (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
                    pings += [UInt8](repeating: 0, count: 96)
                }
                try peer.send(pings)
            }
            try peer.send(text: "after")
            try mayRead.wait()
            while pongs.value.last < count - 1 {
                let pong = try peer.readFrame()
                let number = pong.payload.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
                #expect(pong.first == 0x8A && number >= pongs.value.last)
                pongs.value = (pongs.value.count + 1, number)
            }
            try peer.closeInTurn()
        }
        let before = try memoryInUse()
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.receive { notes.note($0.words) }
        try waitFor("the message behind the pings") { notes.calls.count == 2 ? () : nil }
        #expect(try memoryInUse() - before < Self.memory)
        mayRead.open()
        try waitFor("the last pong") { pongs.value.last == count - 1 ? () : nil }
        #expect(pongs.value.count < count)
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "text: after", "close 1000 -", "complete"])
    }

    // MARK: - Without an end

    @Test
    func `WS-17 the connection is closed two seconds after the program's close if the server reads nothing`()
        throws
    {
        let isOver = Latch()
        let server = try socketServer { _ in try isOver.wait() }
        defer { isOver.open() }
        let notes = SocketNotes()
        let task = begin(server, notes)
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        // The first cannot be written whole, the second not at all.
        for name in ["first", "second"] {
            task.send(.data(Data(count: 64 << 20))) {
                notes.note("\(name) \((($0 ?? URLError(.unknown)) as NSError).code)")
            }
        }
        task.receive { notes.note($0.words) }
        task.cancel(with: .goingAway, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls.count == 6)
        #expect(Set(notes.calls).isSuperset(of: ["first -999", "second -999", "error -999"]))
        #expect(notes.calls.suffix(2) == ["close 1001 -", "complete"])
    }

    /// A way in which a server spoils a closing handshake.
    enum Ending: CaseIterable, Sendable {
        case halfAFrame, messagesWithoutEnd, bytesAfterTheAnswer, staysAfterTheAnswer

        func serve(_ peer: TestPeer) throws {
            while try peer.readFrame().first != 0x88 {}
            switch self {
            case .halfAFrame:
                try peer.send([0x88, 2, 3])
            case .messagesWithoutEnd:
                while true { try peer.send(frame: 0x82, piece) }
            case .bytesAfterTheAnswer:
                try peer.send(close: 1000)
                while true { try peer.send(piece) }
            case .staysAfterTheAnswer:
                try peer.send(close: 1000)
            }
            peer.waitForEnd()
        }
    }

    @Test(arguments: Ending.allCases)
    func `WS-17 and WS-22 the program's close ends the task, whatever the server does`(
        _ ending: Ending
    ) throws {
        let server = try socketServer { try ending.serve($0) }
        let before = try memoryInUse()
        let notes = SocketNotes()
        let task = begin(server, notes)
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1000 -", "complete"])
        #expect(task.state == .completed)
        #expect(try memoryInUse() - before < Self.memory)
    }

    @Test(arguments: [false, true])
    func `WS-22 the connection is closed if the server sends its close frame and stays`(_ sendsOn: Bool)
        throws
    {
        let answers = Box<[ClientFrame]>([])
        let server = try socketServer { peer in
            try peer.send(close: 4001, "bye")
            answers.value = [try peer.readFrame()]
            // Frames that would be a message and a failure.
            while sendsOn { try peer.send([0x81, 1, 65, 0xFF, 0xFF]) }
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let task = begin(server, notes)
        task.receive { notes.note($0.words) }
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "error -1005", "close 4001 bye", "complete"])
        #expect(answers.value == [ClientFrame(first: 0x88, payload: [0x0F, 0xA1])])
    }

    // MARK: - Silence

    @Test func `WS-6 the request timeout bounds the handshake`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 0.2
        let notes = SocketNotes()
        let task = begin(server, notes, configuration)
        task.receive { notes.note($0.words) }
        try notes.waitForEnd()
        #expect(notes.calls == ["error -1001", "complete -1001"])
    }

    @Test func `WS-6 after the handshake only the resource timeout ends a WebSocket with a silent server`()
        throws
    {
        let server = try socketServer { $0.waitForEnd() }
        let notes = SocketNotes()
        try onHeldLoop { loop, clock in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 5
            configuration.timeoutIntervalForResource = 20
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            let task = session.webSocketTask(with: server.socketURL)
            task.resume()
            task.receive { notes.note($0.words) }
            task.sendPing { notes.note("ping \((($0 ?? URLError(.unknown)) as NSError).code)") }
            loop.passUntil { !notes.calls.isEmpty }
            for seconds in [15.0, 10] {
                #expect(notes.calls == ["open -"])
                loop.pass(seconds, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
            }
            #expect(task.closeCode == .abnormalClosure)
            session.invalidateAndCancel()
            loop.runOut()
        }
        #expect(Set(notes.calls) == ["open -", "error -1001", "ping -1001", "complete -1001"])
        #expect(notes.calls.count == 4)
    }
}

private let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 65_536)
