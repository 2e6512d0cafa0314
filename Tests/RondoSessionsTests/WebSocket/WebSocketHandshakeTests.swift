import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

/// Servers that answer the handshake wrongly, or not at all.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct WebSocketHandshakeTests {
    enum Fault: CaseIterable, Sendable {
        case status, upgrade, connection, accept, noAccept, extensions, parameter, unofferedProtocol

        func change(_ head: String) -> String {
            switch self {
            case .status: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            case .upgrade: head.replacingOccurrences(of: "Upgrade: websocket", with: "Upgrade: other")
            case .connection: head.replacingOccurrences(of: "Connection: Upgrade", with: "Connection: close")
            case .accept: head.replacingOccurrences(of: "Accept: ", with: "Accept: A")
            case .noAccept: head.replacingOccurrences(of: "Sec-WebSocket-Accept", with: "X")
            case .extensions: with("Sec-WebSocket-Extensions: x-unknown", head)
            case .parameter:
                with("Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=16", head)
            case .unofferedProtocol: with("Sec-WebSocket-Protocol: chat", head)
            }
        }

        private func with(_ field: String, _ head: String) -> String { head.dropLast(2) + field + "\r\n\r\n" }
    }

    @Test(arguments: Fault.allCases)
    func `WS-4 a handshake that is answered wrongly fails with -1011, and no frame is sent`(_ fault: Fault)
        throws
    {
        let framed = Box(0)
        let server = try socketServer(change: { fault.change($0) }) { peer in
            while try peer.read(count: 1).count == 1 { framed.value += 1 }
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.receive { notes.note($0.words) }
        task.send(.string("x")) { notes.note("sent \((($0 ?? URLError(.unknown)) as NSError).code)") }
        task.resume()
        try notes.waitForEnd()
        #expect(Set(notes.calls) == ["error -1011", "sent -1011", "complete -1011"])
        #expect(notes.calls.count == 3)
        #expect((task.response as? HTTPURLResponse)?.statusCode == (fault == .status ? 200 : 101))
        #expect(framed.value == 0)
    }

    @Test(arguments: ["", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 101 Yes\r\nno field\r\n\r\n"])
    func `WS-4 a connection that ends before the answer, or brings something else, fails with -1011`(
        _ answer: String
    ) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(answer)
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        session.webSocketTask(with: server.socketURL).resume()
        try notes.waitForEnd()
        #expect(notes.calls == ["complete -1011"])
    }

    @Test(arguments: ["http://127.0.0.1:9/", "ftp://127.0.0.1/", "POST ws://127.0.0.1:9/"])
    func `WS-1 another scheme or method fails with -1002 when the task is resumed`(_ text: String) throws {
        let words = text.split(separator: " ")
        var request = URLRequest(url: URL(string: String(words[words.count - 1]))!)
        if words.count > 1 { request.httpMethod = String(words[0]) }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: request)
        task.receive { notes.note($0.words) }
        #expect(notes.calls.isEmpty)
        task.resume()
        try notes.waitForEnd()
        #expect(notes.calls == ["error -1002", "complete -1002"])
    }

    @Test func `US-30 US-66 a task whose request cannot be sent fails once it is resumed, with its metrics`()
        throws
    {
        let url = try #require(URL(string: "http://127.0.0.1/"))
        let calls = try onLoopThread { loop -> [[String]] in
            let delegate = Measuring()
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            let task = session.webSocketTask(with: url)
            task.resume()
            task.suspend()
            loop.runInVain(.work)
            let before = delegate.log.entries
            task.resume()
            loop.runOut(.work)
            session.invalidateAndCancel()
            return [before, delegate.log.entries]
        }
        #expect(calls == [[], ["metrics", "complete -1002"]])
    }

    @Test func `US-86 a WebSocket's error names its ws or wss URL`() throws {
        let refused = try RefusedPort()
        let url = try #require(URL(string: "ws://127.0.0.1:\(refused.port)/a?b"))
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: url)
        let received = Box<URLError?>(nil)
        task.receive { if case .failure(let error) = $0 { received.value = error as? URLError } }
        task.resume()
        // The task has its error when it is over, which is after what waits has failed.
        try notes.waitForEnd()
        for error in [received.value, task.error as? URLError] {
            #expect(error?.code == .cannotConnectToHost)
            #expect(error?.failingURL == url)
            #expect(error?.userInfo["NSErrorFailingURLStringKey"] as? String == url.absoluteString)
        }
    }

    @Test(arguments: ["ws", "http"])
    func `WS-3 a redirect is followed, with a new key`(_ scheme: String) throws {
        let target = try socketServer { try $0.closeInTurn() }
        let location = "\(scheme)://127.0.0.1:\(target.port)/there"
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        try waitFor("the opening") { notes.calls.isEmpty ? nil : () }
        task.cancel()
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "close 0 -", "complete"])
        #expect(task.currentRequest?.url?.absoluteString == "ws://127.0.0.1:\(target.port)/there")
        let keys = [server, target].compactMap { $0.requests.first?.value("Sec-WebSocket-Key") }
        #expect(Set(keys).count == 2)
        let request = try #require(target.requests.first)
        #expect(request.target == "/there")
        #expect(request.value("Sec-WebSocket-Version") == "13")
        #expect(request.value("Connection") == "Upgrade")
        #expect(request.value("Cache-Control") == nil)
    }

    /// Answers every challenge.
    private final class Credentials: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) ->
                Void
        ) {
            completionHandler(
                .useCredential, URLCredential(user: "u", password: "p", persistence: .none))
        }
    }

    @Test func `WS-3 a challenge is answered and a cookie kept before the upgrade`() async throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            guard request.value("Authorization") != nil else {
                return try peer.respond(
                    "401 Unauthorized",
                    ["WWW-Authenticate: Basic realm=\"r\"", "Set-Cookie: a=b", "Connection: close"])
            }
            let accept = WebSocketHandshake.accept(for: request.value("Sec-WebSocket-Key") ?? "") ?? ""
            try peer.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: \(accept)\r\n\r\n")
            try peer.send(text: "in")
            try peer.closeInTurn()
        }
        let session = URLSession(configuration: .ephemeral, delegate: Credentials(), delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.resume()
        #expect(try await task.receive().words == "text: in")
        task.cancel(with: .normalClosure, reason: nil)
        let requests = server.requests
        #expect(requests.map { $0.value("Authorization") } == [nil, "Basic dTpw"])
        #expect(requests.map { $0.value("Cookie") } == [nil, "a=b"])
        #expect(Set(requests.map { $0.value("Sec-WebSocket-Key") }).count == 2)
        try waitFor("the task's end") { task.state == .completed ? () : nil }
    }

    @Test func `WS-7 ws goes through a tunnel of the proxy`() throws {
        let target = try socketServer { peer in
            try peer.send(text: "through")
            try peer.closeInTurn()
        }
        let proxy = try TestServer { peer in
            let request = try peer.readRequest()
            #expect(request.lines.first == "CONNECT 127.0.0.1:\(target.port) HTTP/1.1")
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            try peer.relay(to: target.port)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
        ]
        let notes = SocketNotes()
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: target.socketURL)
        task.receive { notes.note($0.words) }
        task.resume()
        try waitFor("the message") { notes.calls.count == 2 ? () : nil }
        task.cancel()
        try notes.waitForEnd()
        #expect(notes.calls == ["open -", "text: through", "close 0 -", "complete"])
        #expect(proxy.requests.count == 1)
    }

    @Test(arguments: [("407 Who", -1011), ("403 No", -1004)])
    func `WS-7 a proxy that makes no tunnel is named, and not the server`(status: String, code: Int) throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 \(status)\r\nProxy-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n")
            peer.waitForEnd()
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.goBy("HTTP", proxy.port)
        let notes = SocketNotes()
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: try #require(URL(string: "ws://host.invalid/")))
        task.resume()
        try notes.waitForEnd()
        #expect(notes.calls == ["complete \(code)"])
        let words = try #require(task.error?.localizedDescription)
        #expect(words.lowercased().contains("the proxy ") && words.contains("makes no tunnel"), "\(words)")
        #expect(words.contains(String(status.prefix(3))) && !words.contains("instead of 101"), "\(words)")
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true])
    func `WS-7 ws and wss go through a SOCKS server`(_ isSecured: Bool) async throws {
        let certificates = TestCertificates.shared
        let target =
            isSecured
            ? try pythonSocketServer(certificate: certificates.path(.good), key: certificates.keyPath)
            : try pythonSocketServer()
        let (proxy, port) = try socksServer()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.trustTestAuthority()
        configuration.goBy("SOCKS", port)
        let session = URLSession(configuration: configuration)
        let scheme = isSecured ? "wss" : "ws"
        let url = try #require(URL(string: "\(scheme)://localhost:\(try target.port(after: "PORT "))/"))
        let task = session.webSocketTask(with: url)
        task.resume()
        try await task.send(.string("through"))
        #expect(try await task.receive().words == "text: through")
        // It is the proxy that the connection leads to: without it there is none.
        proxy.terminate()
        await #expect(throws: URLError.self) { try await task.receive() }
        let late = session.webSocketTask(with: url)
        late.resume()
        let error = await #expect(throws: URLError.self) { try await late.receive() }
        #expect(error?.code == .cannotConnectToHost)
        session.invalidateAndCancel()
    }

    @Test func `US-32 a WebSocket that is cancelled before it is open ends with -999`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let notes = SocketNotes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.webSocketTask(with: server.socketURL)
        task.receive { notes.note($0.words) }
        task.resume()
        try waitFor("the request") { server.requests.isEmpty ? nil : () }
        task.cancel(with: .normalClosure, reason: nil)
        try notes.waitForEnd()
        #expect(notes.calls == ["error -999", "complete -999"])
    }
}
