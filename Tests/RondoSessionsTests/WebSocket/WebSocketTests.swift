import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

/// Against Python's `websockets`.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct WebSocketTests {
    private func session(_ notes: SocketNotes? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connection.tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        return URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
    }

    @Test func `WS-8 and WS-9 text and data go both ways, by async functions`() async throws {
        let server = try pythonSocketServer()
        let notes = SocketNotes()
        let session = session(notes)
        let task = session.webSocketTask(with: try server.socketURL())
        task.resume()
        try await task.send(.string("grüße"))
        try await task.send(.data(Data(repeating: 7, count: 300_000)))
        try await task.send(.string("fragments"))
        #expect(try await task.receive().words == "text: grüße")
        #expect(try await task.receive().words == "data: 300000 bytes")
        #expect(try await task.receive().words == "text: abc")
        try await task.send(.string("extensions"))
        #expect(try await task.receive().words == "text: permessage-deflate")
        task.cancel(with: .normalClosure, reason: Data("bye".utf8))
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 1000 bye", "complete"])
        #expect(task.closeCode == .normalClosure)
        #expect(task.state == .completed)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 101)
    }

    @Test
    func `WS-2 and WS-5 protocols are offered, and operations wait for the handshake`()
        throws
    {
        let server = try pythonSocketServer(", subprotocols=['chat', 'other']")
        let notes = SocketNotes()
        let session = session(notes)
        let url = try server.socketURL()
        let task = session.webSocketTask(with: url, protocols: ["chat", "none"])
        task.receive { notes.note($0.words) }
        task.send(.string("name")) { notes.note($0 == nil ? "sent" : "not sent") }
        task.resume()
        try waitFor("the answer") { notes.calls.count == 3 ? () : nil }
        task.cancel(with: .goingAway, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["open chat", "sent", "text: chat", "close 1001 -", "complete"])
    }

    @Test func `WS-19 the server closes: messages first, then -1005, its code and reason`() async throws {
        let server = try pythonSocketServer()
        let notes = SocketNotes()
        let session = session(notes)
        let task = session.webSocketTask(with: try server.socketURL())
        task.resume()
        try await task.send(.string("one"))
        try await task.send(.string("close 4001 enough"))
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 4001 enough", "complete"])
        #expect(try await task.receive().words == "text: one")
        let later = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(later?.code == .networkConnectionLost)
        let sent = await #expect(throws: URLError.self) { try await task.send(.string("late")) }
        #expect(sent?.code == .networkConnectionLost)
        #expect(task.closeCode.rawValue == 4001)
        #expect(task.closeReason == Data("enough".utf8))
    }

    @Test func `WS-15 and WS-16 pings and pongs go both ways`() async throws {
        let server = try pythonSocketServer()
        let session = session()
        let task = session.webSocketTask(with: try server.socketURL())
        task.resume()
        try await task.sendPing()
        try await task.send(.string("ping"))
        #expect(try await task.receive().words == "text: ponged")
        session.invalidateAndCancel()
        await #expect(throws: URLError.self) { try await task.receive() }
    }

    @Test func `WS-27 the sequence of messages ends after a normal close`() async throws {
        let server = try pythonSocketServer()
        let session = session()
        let task = session.webSocketTask(with: try server.socketURL())
        task.resume()
        for word in ["a", "b", "close 1000 done"] { try await task.send(.string(word)) }
        var words: [String] = []
        for try await message in task.messages { words.append(message.words) }
        #expect(words == ["text: a", "text: b"])
    }

    @Test func `WS-27 the sequence of messages throws after another close`() async throws {
        let server = try pythonSocketServer()
        let session = session()
        let task = session.webSocketTask(with: try server.socketURL())
        task.resume()
        for word in ["a", "close 4001 enough"] { try await task.send(.string(word)) }
        var words: [String] = []
        let error = await #expect(throws: URLError.self) {
            for try await message in task.messages { words.append(message.words) }
        }
        #expect(error?.code == .networkConnectionLost)
        #expect(words == ["text: a"])
    }

    @Test
    func `WS-16 a pong also answers earlier pings, and an unsolicited pong is ignored`()
        throws
    {
        let server = try socketServer { peer in
            try peer.send(frame: 0x8A, [1])
            try peer.send(frame: 0x8A, [0, 0, 0, 0, 0, 0, 0, 99])
            let pings = [try peer.readFrame(), try peer.readFrame(), try peer.readFrame()]
            #expect(pings.map(\.first) == [0x89, 0x89, 0x89])
            #expect(Set(pings.map(\.payload)).count == 3)
            try peer.send(frame: 0x8A, pings[1].payload)
            try peer.send(frame: 0x8A, pings[1].payload)
            try peer.send(text: "after")
            try peer.closeInTurn()
        }
        let notes = SocketNotes()
        let session = session(notes)
        let task = session.webSocketTask(with: server.socketURL)
        for number in 1...3 {
            task.sendPing { notes.note("\(number) \($0 == nil ? "ponged" : "not ponged")") }
        }
        task.receive { notes.note($0.words) }
        task.resume()
        try waitFor("the message") { notes.calls.count == 4 ? () : nil }
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(
            notes.calls == [
                "open -", "1 ponged", "2 ponged", "text: after", "3 not ponged", "close 1000 -", "complete",
            ])
    }

    @Test func `WS-29 an open WebSocket does not count among the connections to its host`() async throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            guard let key = request.value("Sec-WebSocket-Key") else { return try peer.respond(body: "plain") }
            try peer.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: \(WebSocketHandshake.accept(for: key) ?? "")\r\n\r\n")
            try peer.closeInTurn()
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 1
        let notes = SocketNotes()
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let tasks = (0..<3).map { _ in session.webSocketTask(with: server.socketURL) }
        for task in tasks { task.resume() }
        try waitFor("three openings") { notes.calls.count == 3 ? () : nil }
        let (data, _) = try await session.data(from: server.url())
        #expect(String(decoding: data, as: UTF8.self) == "plain")
        for task in tasks { task.cancel(with: .normalClosure, reason: nil) }
        try waitFor("three ends") { notes.calls.count { $0 == "complete" } == 3 ? () : nil }
    }

    @Test func `WS-1 a wss URL uses TLS`() async throws {
        let certificates = TestCertificates.shared
        let server = try pythonSocketServer(certificate: certificates.path(.good), key: certificates.keyPath)
        let session = session()
        let task = session.webSocketTask(
            with: URL(string: "wss://localhost:\(try server.port(after: "PORT "))/")!)
        task.resume()
        let long = String(repeating: "ab", count: 200_000)
        try await task.send(.string(long))
        #expect(try await task.receive().words == "text: \(long)")
        task.cancel()
    }

    @Test func `WS-23 with compression switched off none is offered, and messages go both ways`() async throws
    {
        let server = try pythonSocketServer()
        let session = session()
        let task = session.webSocketTask(with: try server.socketURL())
        task.offersCompression = false
        task.resume()
        try await task.send(.string("extensions"))
        #expect(try await task.receive().words == "text: ")
        task.cancel()
    }

    @Test
    func `WS-14 on a run loop the answer to a message is sent before the failure that arrived after it`()
        throws
    {
        let frames = Box<[ClientFrame]>([])
        let server = try socketServer { peer in
            try peer.send([0x81, 1, 65, 0xFF])
            frames.value = [try peer.readFrame(), try peer.readFrame()]
        }
        let url = server.socketURL
        let calls = try onLoopThread { loop -> [String] in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: url)
            task.receive { result in
                notes.note(result.words)
                task.send(.string("B")) { notes.note($0 == nil ? "sent" : "not sent") }
            }
            task.resume()
            loop.run(.work) { notes.isComplete }
            return notes.calls
        }
        #expect(calls == ["open -", "text: A", "sent", "complete -1011"])
        #expect(
            frames.value == [
                ClientFrame(first: 0x81, payload: [66]), ClientFrame(first: 0x88, payload: [0x03, 0xEA]),
            ])
    }

    @Test func `WS-25 on a run loop a WebSocket neither reads nor writes in other modes, and loses nothing`()
        throws
    {
        let server = try socketServer { peer in
            try peer.send(text: "one")
            try peer.send(frame: 0x89, [1, 2])
            #expect(try peer.readFrame() == ClientFrame(first: 0x8A, payload: [1, 2]))
            try peer.send(text: "two")
            try peer.closeInTurn()
        }
        let url = server.socketURL
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = SocketNotes()
            let session = URLSession(
                configuration: .ephemeral, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: url)
            let onLoop = Box(true)
            for _ in 0..<2 {
                task.receive {
                    if !(loop.isCurrent && loop.currentMode == .work) { onLoop.value = false }
                    notes.note($0.words)
                }
            }
            task.resume()
            loop.runInVain(.other)
            let before = notes.calls
            loop.run(.work) { notes.calls.count == 3 }
            task.cancel(with: .normalClosure, reason: nil)
            loop.runOut(.work)
            return [before, notes.calls, ["\(onLoop.value)"]]
        }
        #expect(
            calls == [
                [], ["open -", "text: one", "text: two", "close 1000 -", "complete"], ["true"],
            ])
    }
}
