import Rondo
import RondoTestSupport
import Testing

/// TCP streams of sessions.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct StreamTaskTests {
    @Test func `US-89 reads and writes are performed in the order of their calls, each handler called once`()
        throws
    {
        let server = try TestServer { peer in
            #expect(try peer.readLine() == "one")
            #expect(try peer.readLine() == "two")
            try peer.send("abcdef")
            #expect(try peer.readLine() == "three")
            try peer.send("gh")
            peer.finish()
            peer.waitForEnd()
        }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        #expect(task.state == .suspended)
        #expect(task.originalRequest == nil)
        for (minimum, maximum) in [(2, 2), (3, 3), (100, 100)] {
            task.readData(ofMinLength: minimum, maxLength: maximum, timeout: 0) { data, isAtEnd, error in
                log.note(readText(data, isAtEnd, error))
            }
        }
        for text in ["one\n", "two\n", "three\n"] {
            task.write(Data(text.utf8), timeout: 0) { error in log.note("wrote \(error == nil)") }
        }
        task.closeWrite()
        task.resume()
        try teller.waitForEnd()
        #expect(log.entries.filter { !$0.hasPrefix("wrote") } == ["ab", "cde", "fgh|"])
        #expect(log.count(of: "wrote true") == 3)
        #expect(teller.log.entries.sorted() == ["complete 0", "read closed", "write closed"])
        #expect(task.countOfBytesReceived == 8 && task.countOfBytesSent == 14)
        #expect(task.state == .completed && task.error == nil)
        let late = Box<[String]>([])
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { late.value.append(readText($0, $1, $2)) }
        task.write(Data("x".utf8), timeout: 0) { error in
            late.value.append("write \((error as? URLError)?.errorCode ?? 0)")
        }
        try waitFor("late handlers") { late.value.count == 2 ? () : nil }
        #expect(late.value == ["|", "write -1005"])
        session.invalidateAndCancel()
    }

    @Test
    func
        `US-89 US-21 on a run loop all handlers are called in its mode, and the server waits in other modes`()
        throws
    {
        let server = try TestServer { peer in
            while true { try peer.send(try peer.readLine() + "\n") }
        }
        let entries = try onLoopThread { loop -> [String] in
            let log = EventLog()
            let session = URLSession(configuration: .default, delegate: nil, runLoop: loop, modes: [.work])
            let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
            task.readData(ofMinLength: 6, maxLength: 100, timeout: 30) { data, isAtEnd, error in
                log.note("\(readText(data, isAtEnd, error)) \(loop.isCurrent) \(loop.currentMode == .work)")
            }
            task.write(Data("hello\n".utf8), timeout: 30) { _ in
                log.note("wrote \(loop.isCurrent) \(loop.currentMode == .work)")
            }
            task.resume()
            loop.runInVain(.other)
            #expect(log.entries.isEmpty)
            loop.run(.work) { log.entries.count == 2 }
            task.cancel()
            #expect(loop.runOut(.work) == .finished)
            session.invalidateAndCancel()
            loop.runOut(.work)
            return log.entries
        }
        #expect(entries == ["wrote true true", "hello\n true true"])
    }

    @Test
    func
        `US-89 a read ends with -1001 after its timeout, and the next read gets the bytes that have arrived`()
        throws
    {
        let server = try TestServer { peer in
            try peer.send("abc")
            _ = try peer.readLine()
            try peer.send("def")
            peer.waitForEnd()
        }
        let log = EventLog()
        let session = URLSession(configuration: .default)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.readData(ofMinLength: 6, maxLength: 6, timeout: 0.05) { log.note(readText($0, $1, $2)) }
        task.resume()
        try waitFor("the end of its time") { log.entries.count == 1 ? () : nil }
        task.write(Data("\n".utf8), timeout: 10) { _ in }
        task.readData(ofMinLength: 6, maxLength: 6, timeout: 30) { log.note(readText($0, $1, $2)) }
        try waitFor("the next read") { log.entries.count == 2 ? () : nil }
        #expect(log.entries == ["error -1001", "abcdef"])
        task.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `US-89 a write that the server does not read ends with -1001, and later writes fail`() throws {
        let end = Latch()
        let server = try TestServer { _ in try end.wait() }
        let log = EventLog()
        let session = URLSession(configuration: .default)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.write(Data(count: 64 << 20), timeout: 0.1) { error in
            log.note("\((error as? URLError)?.errorCode ?? 0)")
        }
        task.write(Data("x".utf8), timeout: 0) { error in
            log.note("next \((error as? URLError)?.errorCode ?? 0)")
        }
        task.resume()
        try waitFor("both") { log.entries.count == 2 ? () : nil }
        #expect(log.entries == ["-1001", "next -1001"])
        end.open()
        task.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `US-32 US-89 cancelling ends all operations with -999`() throws {
        let end = Latch()
        let server = try TestServer { _ in try end.wait() }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
        task.resume()
        let written = Latch()
        task.write(Data("x".utf8), timeout: 0) { _ in written.open() }
        try written.wait()
        task.cancel()
        try teller.waitForEnd()
        #expect(log.entries == ["error -999", "error -999"])
        #expect(teller.log.entries == ["complete -999"])
        // One that was never resumed, too.
        let unborn = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        unborn.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
        unborn.cancel()
        try waitFor("the second end") { teller.log.count(of: "complete -999") == 2 ? () : nil }
        #expect(log.entries.count == 3)
        end.open()
        session.invalidateAndCancel()
    }

    @Test(arguments: ["refused", "port 0", "reset", "no name"])
    func `US-86 US-89 a stream task that fails gives its error to all waiting operations`(_ how: String)
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readLine()
            peer.reset()
        }
        let refused = try RefusedPort()
        defer { withExtendedLifetime(refused) {} }
        let (host, port, code) =
            switch how {
            case "refused": ("127.0.0.1", Int(refused.port), -1004)
            case "port 0": ("127.0.0.1", 0, -1000)
            case "reset": ("127.0.0.1", Int(server.port), -1005)
            default: ("does-not-exist.invalid", 80, -1003)
            }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: host, port: port)
        task.write(Data("x\n".utf8), timeout: 0) { _ in }
        task.readData(ofMinLength: 1, maxLength: 9, timeout: 0) { log.note(readText($0, $1, $2)) }
        task.resume()
        try teller.waitForEnd()
        #expect(log.entries == ["error \(code)"])
        #expect(teller.log.entries == ["complete \(code)"])
        session.invalidateAndCancel()
    }

    private func writeUntilItFails(_ task: URLSessionStreamTask) throws {
        let failed = Box(false)
        while !failed.value {
            let wrote = Latch()
            task.write(Data("x".utf8), timeout: 30) { error in
                failed.value = error != nil
                wrote.open()
            }
            try wrote.wait()
        }
    }

    @Test func `US-86 US-89 a reset that a write has met first is no orderly end of what is read`() throws {
        let go = Latch()
        let server = try TestServer { peer in
            try peer.send("abc")
            try go.wait()
            peer.reset()
        }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.resume()
        task.readData(ofMinLength: 3, maxLength: 3, timeout: 30) { log.note(readText($0, $1, $2)) }
        try waitFor("the bytes") { log.entries == ["abc"] ? () : nil }
        go.open()
        try writeUntilItFails(task)
        task.readData(ofMinLength: 1, maxLength: 3, timeout: 30) { log.note(readText($0, $1, $2)) }
        try teller.waitForEnd()
        #expect(log.entries == ["abc", "error -1005"])
        #expect(teller.log.entries == ["complete -1005"])
        session.invalidateAndCancel()
    }

    @Test func `US-86 US-89 a server that ended its side in order has sent all, though later writes fail`()
        throws
    {
        let ended = Latch()
        let server = try TestServer { peer in
            try peer.send("abc")
            peer.finish()
            ended.open()
        }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.resume()
        try ended.wait()
        try writeUntilItFails(task)
        task.readData(ofMinLength: 4, maxLength: 9, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.closeWrite()
        try teller.waitForEnd()
        #expect(log.entries == ["abc|"])
        #expect(teller.log.entries.last == "complete 0")
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true])
    func `US-89 a stream whose writing side was closed cannot be secured`(bySecureProxy: Bool) throws {
        let server = try TestServer { peer in _ = try peer.readLine() }
        let (proxy, proxyPort) = try startSecureProxy()
        defer { withExtendedLifetime(proxy) {} }
        let configuration = URLSessionConfiguration.default
        if bySecureProxy {
            // TLS with the proxy does not secure the connection to the host.
            var tls = TLSSettings()
            tls.verification = .none
            configuration.connection.proxy = .by(
                StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxyPort), tls: tls))
        }
        let teller = StreamNotes()
        let session = URLSession(configuration: configuration, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.closeWrite()
        task.startSecureConnection()
        task.resume()
        try teller.waitForEnd()
        #expect(teller.log.entries.last == "complete -1200")
        #expect(
            task.error?.localizedDescription
                == "127.0.0.1: The connection cannot be secured: its writing side was closed.")
        session.invalidateAndCancel()
    }

    @Test func `US-11 US-64 US-89 settings of the session for requests disturb no task that has none`() throws
    {
        let server = try TestServer { peer in try peer.send("x") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 30
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpAdditionalHeaders = ["X-Own": "1"]
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: configuration, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.resume()
        try waitFor("the byte") { log.entries == ["x"] ? () : nil }
        task.cancel()
        try waitFor("the end") { teller.log.entries.contains("complete -999") ? () : nil }
        session.downloadTask(withResumeData: Data("no such data".utf8)).resume()
        try waitFor("the end") { teller.log.entries.last == "complete -1002" ? () : nil }
        var request = URLRequest(url: server.url())
        request.url = nil
        session.dataTask(with: request).resume()
        try waitFor("the end") { teller.log.entries.count { $0 == "complete -1002" } == 2 ? () : nil }
        session.invalidateAndCancel()
    }

    /// Says "go" in plain text, then TLS, and answers each line with itself.
    private func startTLSServer() throws -> (TestServerProcess, UInt16) {
        let script = """
            import socket, ssl, sys
            listener = socket.create_server(("127.0.0.1", 0))
            print("PORT", listener.getsockname()[1], flush=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            while True:
                peer = listener.accept()[0]
                assert peer.recv(100) == b"STARTTLS\\n"
                peer.sendall(b"go\\n")
                try:
                    peer = context.wrap_socket(peer, server_side=True)
                    while True:
                        line = peer.recv(1000)
                        if not line:
                            peer = peer.unwrap()
                            break
                        peer.sendall(line)
                except (ssl.SSLError, OSError): pass
                peer.close()
            """
        return try startPython(script)
    }

    /// A proxy over TLS whose tunnels lead to a host that says nothing.
    private func startSecureProxy() throws -> (TestServerProcess, UInt16) {
        try startPython(
            """
            import socket, ssl, sys
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            listener = socket.create_server(("127.0.0.1", 0))
            print("PORT", listener.getsockname()[1], flush=True)
            peer = context.wrap_socket(listener.accept()[0], server_side=True)
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"): head += peer.recv(1)
            peer.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
            while peer.recv(1000): pass
            """)
    }

    private func startPython(_ script: String) throws -> (TestServerProcess, UInt16) {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess([
            "python3", "-c", script, certificates.path(.good), certificates.keyPath(.good),
        ])
        return (server, try server.port(after: "PORT "))
    }

    @Test func `ST-42 US-89 the streams of a secured stream task say that they are secured`() throws {
        let (process, port) = try startTLSServer()
        defer { withExtendedLifetime(process) {} }
        let teller = StreamNotes()
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(port))
        task.resume()
        task.write(Data("STARTTLS\n".utf8), timeout: 30) { _ in }
        task.readData(ofMinLength: 3, maxLength: 100, timeout: 30) { _, _, _ in }
        task.startSecureConnection()
        task.write(Data("secret\n".utf8), timeout: 30) { _ in }
        task.captureStreams()
        try waitFor("the streams") { teller.log.entries.contains("streams true true") ? () : nil }
        let streams = try #require(teller.streams)
        for stream in [streams.input, streams.output] as [Stream] {
            let level = stream.property(forKey: .socketSecurityLevelKey) as? String
            #expect(level == StreamSocketSecurityLevel.negotiatedSSL.rawValue)
            #expect(stream.property(forKey: .tlsSettingsKey) is TLSSettings)
            #expect(stream.property(forKey: .tlsInformationKey) is TLSInformation)
        }
        streams.input.close()
        streams.output.close()
        session.invalidateAndCancel()
    }

    @Test func `US-89 a secured stream whose writing side was closed goes on when it is to be secured again`()
        throws
    {
        let (process, port) = try startTLSServer()
        defer { withExtendedLifetime(process) {} }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(port))
        task.write(Data("STARTTLS\n".utf8), timeout: 30) { _ in }
        task.readData(ofMinLength: 3, maxLength: 100, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.startSecureConnection()
        task.write(Data("secret\n".utf8), timeout: 30) { _ in }
        task.readData(ofMinLength: 7, maxLength: 7, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.closeWrite()
        task.startSecureConnection()
        task.readData(ofMinLength: 1, maxLength: 100, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.resume()
        try teller.waitForEnd()
        #expect(log.entries == ["go\n", "secret\n", "|"])
        #expect(teller.log.entries.last == "complete 0")
        session.invalidateAndCancel()
    }

    @Test(arguments: [true, false])
    func `US-89 startSecureConnection takes effect after earlier work and asks for trust`(_ trusts: Bool)
        throws
    {
        let (process, port) = try startTLSServer()
        defer { withExtendedLifetime(process) {} }
        let (teller, log) = (StreamNotes(trusts: trusts), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(port))
        task.resume()
        task.write(Data("STARTTLS\n".utf8), timeout: 30) { _ in }
        task.readData(ofMinLength: 3, maxLength: 100, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.startSecureConnection()
        task.write(Data("secret\n".utf8), timeout: 30) { log.note("wrote \($0 == nil)") }
        task.readData(ofMinLength: 7, maxLength: 100, timeout: 30) { log.note(readText($0, $1, $2)) }
        if trusts {
            try waitFor("the answer") { log.entries.contains("secret\n") ? () : nil }
            #expect(log.entries.first == "go\n")
            task.closeWrite()
            task.closeRead()
        }
        try teller.waitForEnd()
        #expect(teller.log.entries.first == "challenge true")
        if !trusts {
            #expect(log.entries.first == "go\n")
            #expect(Set(log.entries.dropFirst()) == ["wrote false", "error -1203"])
            #expect(teller.log.entries.last == "complete -1203")
        }
        session.invalidateAndCancel()
    }

    @Test
    func `US-89 captured streams are unopened and yield bytes that were read already, and the task ends`()
        throws
    {
        let server = try TestServer { peer in
            try peer.send("abcdef")
            while true { try peer.send(try peer.readLine() + "!\n") }
        }
        let (teller, log) = (StreamNotes(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        // A read that wants more than there is has read ahead when its time is over.
        task.readData(ofMinLength: 10, maxLength: 10, timeout: 0.1) { log.note(readText($0, $1, $2)) }
        task.readData(ofMinLength: 2, maxLength: 2, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.captureStreams()
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
        task.resume()
        try waitFor("the streams") {
            teller.log.entries.contains("streams true true") && log.entries.count == 3 ? () : nil
        }
        #expect(log.entries == ["error -1001", "ab", "error -1005"])
        #expect(task.state == .completed)
        let streams = try #require(teller.streams)
        let taken = Streams(input: streams.input, output: streams.output)
        teller.streams = nil
        let text = try onLoopThread { loop -> String in
            let events = EventLog()
            let reader = Reader(events)
            for stream in [taken.input, taken.output] as [Stream] {
                stream.delegate = reader
                stream.schedule(in: loop, forMode: .work)
                stream.open()
            }
            _ = [UInt8]("line\n".utf8).withUnsafeBufferPointer { bytes in
                taken.output.write(bytes.baseAddress!, maxLength: 5)
            }
            loop.run(.work) { reader.text.hasSuffix("!\n") }
            taken.input.close()
            taken.output.close()
            return reader.text
        }
        #expect(text == "cdefline!\n")
        session.finishTasksAndInvalidate()
        // Nothing came behind it.
        #expect(teller.log.entries == ["streams true true"])
    }

    /// Two streams on their way to another thread.
    private struct Streams: @unchecked Sendable {
        // Nothing else uses them any more.
        let input: InputStream
        let output: OutputStream
    }

    private final class Reader: NSObject, StreamDelegate {
        var text = ""
        private let log: EventLog
        init(_ log: EventLog) { self.log = log }

        func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
            guard eventCode == .hasBytesAvailable, let input = aStream as? InputStream else { return }
            var bytes = [UInt8](repeating: 0, count: 3)
            let count = input.read(&bytes, maxLength: 3)
            if count > 0 { text += String(decoding: bytes[..<count], as: UTF8.self) }
        }
    }

    @Test func `US-30 US-89 a suspended stream task sends and reads nothing until it is resumed`() throws {
        let server = try TestServer { peer in
            while true { try peer.send(try peer.readLine() + "\n") }
        }
        try onLoopThread { loop in
            let log = EventLog()
            let session = URLSession(configuration: .default, delegate: nil, runLoop: loop, modes: [.work])
            let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
            task.resume()
            task.write(Data("a\n".utf8), timeout: 0) { _ in log.note("wrote") }
            loop.run(.work) { !log.entries.isEmpty }
            task.suspend()
            task.write(Data("b\n".utf8), timeout: 0) { _ in log.note("wrote") }
            task.readData(ofMinLength: 4, maxLength: 4, timeout: 0) { log.note(readText($0, $1, $2)) }
            loop.runInVain(.work)
            #expect(log.entries == ["wrote"])
            #expect(task.state == .suspended)
            task.resume()
            loop.run(.work) { log.entries.count == 3 }
            #expect(log.entries == ["wrote", "wrote", "a\nb\n"])
            session.invalidateAndCancel()
            loop.runOut(.work)
        }
    }

    @Test(arguments: [false, true])
    func `US-30 US-89 a stream task that is suspended in a handler makes no call before it goes on`(
        cancels: Bool
    ) throws {
        let server = try TestServer { $0.waitForEnd() }
        let (port, notes) = (Int(server.port), StreamNotes())
        let found = try onLoopThread { loop -> [[String]] in
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            let task = session.streamTask(withHostName: "127.0.0.1", port: port)
            task.closeWrite()
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) {
                notes.log.note(readText($0, $1, $2))
                task.suspend()
            }
            task.resume()
            loop.run { notes.log.entries.contains("|") }
            for _ in 1...3 { loop.runInVain(for: 0) }
            let before = notes.log.entries
            if cancels { task.cancel() } else { task.resume() }
            #expect(notes.log.entries == before)
            loop.runOut()
            return [before, notes.log.entries]
        }
        let before = ["write closed", "|"]
        #expect(
            found == [before, before + (cancels ? ["complete -999"] : ["read closed", "complete 0"])])
    }

    @Test func `US-87 US-89 a server is held back while no read asks for its bytes`() throws {
        let sent = Box(0)
        let server = try TestServer { peer in
            let piece = [UInt8](repeating: 1, count: 65_536)
            while true {
                try peer.send(piece)
                sent.value += piece.count
            }
        }
        let done = Latch()
        let session = URLSession(configuration: .default)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.resume()
        task.readData(ofMinLength: 100_000, maxLength: 100_000, timeout: 0) { _, _, _ in done.open() }
        try done.wait()
        // The kernel's buffers are what else there is: nothing was read beyond what was asked for.
        #expect(task.countOfBytesReceived == 100_000)
        task.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `US-82 US-89 a read whose Swift task is cancelled loses no byte`() async throws {
        let go = Latch()
        let server = try TestServer { peer in
            try go.wait()
            try peer.send("abc")
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .default)
        let stream = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        stream.resume()
        let reading = Task { try await stream.readData(ofMinLength: 1, maxLength: 9, timeout: 0) }
        reading.cancel()
        await #expect(throws: URLError.self) { try await reading.value }
        go.open()
        let (data, isAtEnd) = try await stream.readData(ofMinLength: 3, maxLength: 9, timeout: 0)
        #expect(data == Data("abc".utf8) && !isAtEnd)
        try await stream.write(Data("x".utf8), timeout: 0)
        stream.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `US-75 a stream task of an invalidated session is completed from the start`() throws {
        let session = URLSession(configuration: .default)
        session.invalidateAndCancel()
        let log = EventLog()
        let task = session.streamTask(withHostName: "127.0.0.1", port: 1)
        #expect(task.state == .completed)
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
        task.resume()
        try waitFor("the handler") { log.entries.isEmpty ? nil : () }
        #expect(log.entries == ["error -999"])
    }
}
