import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import RondoTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct StreamListenerTests {
    /// Accepts connections in the default mode and sends back what comes, until the peer's end.
    private final class EchoServer {
        let listener: StreamListener
        private(set) var accepted = 0
        private(set) var remotePorts: [Int] = []
        private var open: [ObjectIdentifier: (StreamListener.Connection, StreamNotes)] = [:]
        private(set) var ended = 0

        init(_ listener: StreamListener, _ loop: RunLoop, _ mode: RunLoop.Mode = .default) {
            self.listener = listener
            listener.onConnection = { [unowned self] in take($0, loop, mode) }
            listener.schedule(in: loop, forMode: mode)
        }

        private func take(_ connection: StreamListener.Connection, _ loop: RunLoop, _ mode: RunLoop.Mode) {
            accepted += 1
            remotePorts.append(connection.remotePort)
            let key = ObjectIdentifier(connection.input)
            let notes = StreamNotes { [unowned self] stream, event in
                switch event {
                case .hasBytesAvailable where stream === connection.input:
                    _ = connection.output.writeAll(connection.input.bytes().1)
                case .endEncountered, .errorOccurred:
                    guard open.removeValue(forKey: key) != nil else { return }
                    ended += 1
                    connection.input.close()
                    connection.output.close()
                default: break
                }
            }
            open[key] = (connection, notes)
            for stream in [connection.input, connection.output] as [Foundation.Stream] {
                stream.delegate = notes
                stream.scheduleInRondo(loop, forMode: mode)
                stream.open()
            }
        }
    }

    /// Says something on a plain socket, ends, and answers what came back.
    private func talk(_ descriptor: Int32, _ bytes: [UInt8]) -> [UInt8] {
        PlainSocket.send(bytes, on: descriptor)
        shutdown(descriptor, Int32(SHUT_WR))
        return PlainSocket.receiveAll(descriptor)
    }

    /// Clients on threads of their own; what each got back is counted when it is right.
    private func startClients(_ count: Int, to port: Int) -> Tally {
        let tally = Tally()
        for index in 0..<count {
            let bytes = pattern(1_000 + index)
            Thread.detachNewThread { [self] in
                guard let descriptor = try? PlainSocket.connected(to: port) else { return tally.add(false) }
                tally.add(talk(descriptor, bytes) == bytes)
                close(descriptor)
            }
        }
        return tally
    }

    private final class Tally: Sendable {
        private let state = Mutex((done: 0, right: 0))
        func add(_ isRight: Bool) {
            state.withLock {
                $0.done += 1
                if isRight { $0.right += 1 }
            }
        }
        var done: Int { state.withLock { $0.done } }
        var right: Int { state.withLock { $0.right } }
    }

    @Test(arguments: [nil, "127.0.0.1", "localhost"] as [String?])
    func `connections become stream pairs on the loop`(host: String?) throws {
        let findings = try onStreamThread { loop in
            let server = EchoServer(try StreamListener(port: 0, host: host), loop)
            #expect(server.listener.port > 0)
            let tally = startClients(20, to: server.listener.port)
            try loop.run { server.ended == 20 }
            try waitFor("the clients") { tally.done == 20 ? () : nil }
            let peers = Set(server.remotePorts)
            return ["\(tally.right)", "\(server.accepted)", "\(peers.count)", "\(peers.contains(0))"]
        }
        #expect(findings == ["20", "20", "20", "false"])
    }

    @Test func `ST-39 an IPv4 peer of a listener on all addresses is called by its IPv4 address`() throws {
        let findings = try onStreamThread { loop in
            let listener = try StreamListener(port: 0)
            var accepted: StreamListener.Connection?
            listener.onConnection = { accepted = $0 }
            listener.schedule(in: loop, forMode: .default)
            let client = try PlainSocket.connected(to: listener.port)
            defer { close(client) }
            try loop.run { accepted != nil }
            listener.close()
            let connection = accepted!
            let key = Foundation.Stream.PropertyKey.socketRemoteHostNameKey
            let before = connection.input.property(forKey: key) as? String ?? ""
            connection.input.open()
            return [connection.remoteHost, before, connection.input.property(forKey: key) as? String ?? ""]
        }
        #expect(findings == ["127.0.0.1", "127.0.0.1", "127.0.0.1"])
    }

    @Test func `a real client is served`() throws {
        let findings = try onStreamThread { loop in
            let server = EchoServer(try StreamListener(port: 0, host: "127.0.0.1"), loop)
            let client = try TestServerProcess([
                "sh", "-c", "echo hello | socat -t 30 - TCP:127.0.0.1:\(server.listener.port)",
            ])
            // It ends when it has what it sent.
            try loop.run { server.ended == 1 }
            return [try client.line(after: "")]
        }
        #expect(findings == ["hello"])
    }

    @Test func `no connection is accepted in another mode`() throws {
        let findings = try onStreamThread { loop in
            let mode = RunLoop.Mode("its own")
            let server = EchoServer(try StreamListener(port: 0, host: "127.0.0.1"), loop, mode)
            let peer = try PlainSocket.connected(to: server.listener.port)
            loop.add(Port(), forMode: .default)
            loop.pass()
            let before = server.accepted
            try loop.run(inMode: mode) { server.accepted == 1 }
            server.listener.remove(from: loop, forMode: mode)
            server.listener.schedule(in: loop, forMode: .common)
            let other = try PlainSocket.connected(to: server.listener.port)
            try loop.run(inMode: .tracking) { server.accepted == 2 }
            close(peer)
            close(other)
            return ["\(before)"]
        }
        #expect(findings == ["0"])
    }

    @Test(arguments: [RunLoop.Mode.default, .common])
    func `a listener in a mode and in the common modes goes on when one of these schedules ends`(
        removed: RunLoop.Mode
    ) throws {
        let findings = try onStreamThread { loop in
            let server = EchoServer(try StreamListener(port: 0, host: "127.0.0.1"), loop)
            server.listener.schedule(in: loop, forMode: .common)
            server.listener.remove(from: loop, forMode: removed)
            let peer = try PlainSocket.connected(to: server.listener.port)
            defer { close(peer) }
            try loop.run { server.accepted == 1 }
            server.listener.close()
            return ["\(server.accepted)"]
        }
        #expect(findings == ["1"])
    }

    @Test func `a listener whose loop's thread has ended accepts on another loop`() throws {
        // Unsafe: the first thread has ended when the second one uses the listener.
        nonisolated(unsafe) var listener: StreamListener?
        _ = try onStreamThread { loop in
            listener = try StreamListener(port: 0, host: "127.0.0.1")
            listener?.schedule(in: loop, forMode: .default)
            return []
        }
        let findings = try onStreamThread { loop in
            guard let listener else { return [] }
            let server = EchoServer(listener, loop)
            let peer = try PlainSocket.connected(to: listener.port)
            defer { close(peer) }
            try loop.run { server.accepted == 1 }
            listener.close()
            return ["\(server.accepted)"]
        }
        #expect(findings == ["1"])
    }

    @Test func `several listeners share one port`() throws {
        var configuration = StreamListener.Configuration()
        configuration.sharesPort = true
        let findings = try onStreamThread { [configuration] loop in
            let first = try StreamListener(port: 0, host: "127.0.0.1", configuration: configuration)
            let port = first.port
            let others = try (0..<3).map { _ in
                try StreamListener(port: port, host: "127.0.0.1", configuration: configuration)
            }
            let servers = ([first] + others).map { EchoServer($0, loop) }
            let tally = startClients(64, to: port)
            try loop.run { servers.reduce(0) { $0 + $1.ended } == 64 }
            try waitFor("the clients") { tally.done == 64 ? () : nil }
            // Without the option it is taken.
            #expect(throws: NSError.self) { try StreamListener(port: port, host: "127.0.0.1") }
            return ["\(tally.right)", "\(servers.count { $0.accepted > 0 } > 1)"]
        }
        #expect(findings == ["64", "true"])
    }

    @Test func `an address that cannot be listened on is an error with a sentence`() throws {
        let taken = try StreamListener(port: 0, host: "127.0.0.1")
        let failure = #expect(throws: NSError.self) {
            try StreamListener(port: taken.port, host: "127.0.0.1")
        }
        #expect(failure?.code == Int(EADDRINUSE))
        #expect(failure?.localizedDescription.contains("127.0.0.1:\(taken.port)") == true)
        for (port, host) in [(70_000, nil), (-1, nil), (0, "example.com")] as [(Int, String?)] {
            #expect(throws: NSError.self) { try StreamListener(port: port, host: host) }
        }
        #expect(throws: NSError.self) { try StreamListener(port: 0, host: "192.0.2.1") }
        #expect(throws: NSError.self) { try StreamListener(unixPath: "/nonexistent/socket") }
        #expect(throws: NSError.self) { try StreamListener(unixPath: String(repeating: "x", count: 200)) }
    }

    @Test func `after closing no connection is accepted and the handler is not called`() throws {
        let findings = try onStreamThread { loop in
            let server = EchoServer(try StreamListener(port: 0, host: "127.0.0.1"), loop)
            let port = server.listener.port
            let peer = try PlainSocket.connected(to: port)
            server.listener.close()
            loop.add(Port(), forMode: .default)
            loop.pass()
            let refused = (try? PlainSocket.connected(to: port)) == nil
            close(peer)
            return ["\(server.accepted)", "\(refused)", "\(server.listener.isListening)"]
        }
        #expect(findings == ["0", "true", "false"])
    }

    @Test(arguments: [true, false])
    func `a handler may release its listener, closed or not, and no other connection is accepted`(
        closes: Bool
    ) throws {
        let findings = try onStreamThread { loop in
            var listener: StreamListener? = try StreamListener(port: 0, host: "127.0.0.1")
            let port = listener!.port
            let peers = try (0..<5).map { _ in try PlainSocket.connected(to: port) }
            var accepted = 0
            listener?.onConnection = { _ in
                accepted += 1
                if closes { listener?.close() }
                listener = nil
            }
            listener?.schedule(in: loop, forMode: .default)
            try loop.run { listener == nil }
            loop.add(Port(), forMode: .default)
            loop.pass()
            for peer in peers { close(peer) }
            return ["\(accepted)"]
        }
        #expect(findings == ["1"])
    }

    @Test(arguments: [RunLoop.Mode.default, .common])
    func `a handler may take its listener out of the mode, where no other connection is accepted then`(
        mode: RunLoop.Mode
    ) throws {
        let findings = try onStreamThread { loop in
            let other = RunLoop.Mode("its next")
            let listener = try StreamListener(port: 0, host: "127.0.0.1")
            // They wait in the kernel's queue, ready at the same time.
            let peers = try (0..<5).map { _ in try PlainSocket.connected(to: listener.port) }
            defer { for peer in peers { close(peer) } }
            var accepted = 0
            listener.onConnection = { [unowned listener] _ in
                accepted += 1
                listener.remove(from: loop, forMode: mode)
                listener.schedule(in: loop, forMode: other)
            }
            listener.schedule(in: loop, forMode: mode)
            loop.add(Port(), forMode: .default)
            try loop.run { accepted > 0 }
            loop.pass()
            let before = accepted
            try loop.run(inMode: other) { accepted == peers.count }
            return ["\(before)"]
        }
        #expect(findings == ["1"])
    }

    @Test func `connections without a handler are closed`() throws {
        let findings = try onStreamThread { loop in
            let listener = try StreamListener(port: 0, host: "127.0.0.1")
            listener.schedule(in: loop, forMode: .default)
            let peer = try PlainSocket.connected(to: listener.port)
            loop.pass()
            defer { close(peer) }
            return ["\(PlainSocket.receiveAll(peer))"]
        }
        #expect(findings == ["[]"])
    }

    @Test func `a listener says why it hands out no connection`() throws {
        let findings = try onStreamThread { loop in
            let listener = try StreamListener(port: 0, host: "127.0.0.1")
            var reasons = [listener.whyNotDelivering.reason]
            listener.schedule(in: loop, forMode: .tracking)
            reasons.append(listener.whyNotDelivering.reason)
            let other = try StreamListener(port: 0, host: "127.0.0.1")
            other.onConnection = { [unowned other] _ in
                reasons.append(listener.whyNotDelivering.reason)
                reasons.append(other.whyNotDelivering.reason)
            }
            other.schedule(in: loop, forMode: .default)
            let peer = try PlainSocket.connected(to: other.port)
            defer { close(peer) }
            try loop.run { reasons.count == 4 }
            other.close()
            reasons.append(listener.whyNotDelivering.reason)
            listener.close()
            reasons.append(listener.whyNotDelivering.reason)
            return reasons.map(\.description)
        }
        let expected = [
            "notScheduled", "loopNeverRan", "runsInAnotherMode(default)", "busy", "loopNotRunning", "invalid",
        ]
        #expect(findings == expected)
    }

    /// In a process of its own, whose limit of descriptors it lowers.
    @Test func `a listener pauses while descriptors have run out and goes on then`() async {
        await #expect(processExitsWith: .success) {
            let findings = try onStreamThread { loop in
                let listener = try StreamListener(port: 0, host: "127.0.0.1")
                var streams: [StreamListener.Connection] = []
                var troubles: [Int] = []
                var accepted = 0
                listener.onConnection = {
                    accepted += 1
                    streams.append($0)
                }
                var reasons: Set<String> = []
                listener.onTrouble = { [unowned listener] error in
                    troubles.append((error as NSError).code)
                    reasons.insert(listener.whyNotDelivering.reason.description)
                }
                listener.schedule(in: loop, forMode: .default)
                let peers = try (0..<8).map { _ in try PlainSocket.connected(to: listener.port) }
                loop.pass()
                let before = accepted
                let waiting = try PlainSocket.connected(to: listener.port)
                let passes = EventLog()
                let whilePaused = try withNoDescriptorLeft {
                    try loop.run { listener.isPaused }
                    // Nothing turns while it waits: the passes of a quarter of a second are few.
                    passes.observe(.beforeTimers, of: loop, in: .default)
                    _ = loop.run(in: .default, for: 0.25, returnAfterSourceHandled: false)
                    return accepted
                }
                try loop.run { accepted == before + 1 }
                for peer in peers + [waiting] { close(peer) }
                return [
                    "\(before)", "\(whilePaused)", "\(Set(troubles))", "\(passes.entries.count < 30)",
                    "\(listener.isListening)", reasons.joined(separator: ", "),
                ]
            }
            let expected = ["8", "8", "[\(EMFILE)]", "true", "true", "waits"]
            precondition(findings == expected, "\(findings)")
        }
    }

    // MARK: - TLS

    private func secured(timeout: TimeInterval? = nil) throws -> StreamListener {
        var configuration = StreamListener.Configuration()
        // As a program writes it that names an identity and says nothing of the side.
        configuration.tls = try TLSServerTests.settings { $0.role = .client }
        configuration.socketOptions.connectTimeout = timeout
        return try StreamListener(port: 0, host: "localhost", configuration: configuration)
    }

    @Test func `connections are secured, this side being the server`() throws {
        let findings = try onStreamThread { loop in
            let server = EchoServer(try secured(), loop)
            let port = UInt16(server.listener.port)
            let (input, output) = securedStreams(port)
            let notes = StreamNotes()
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { notes.events.contains("space") || notes.events.contains("error") }
            #expect(output.writeAll([1, 2, 3]))
            try loop.run { notes.events.contains("bytes") }
            let bytes = input.bytes().1
            input.close()
            output.close()
            try loop.run { server.ended == 1 }
            // A stranger's client, which says something, and ends when it has read it again.
            let client = try TestServerProcess([
                "python3", "-c",
                """
                import socket, ssl
                context = ssl.create_default_context(cafile="\(TestCertificates.shared.authorityPath)")
                plain = socket.create_connection(("127.0.0.1", \(port)))
                with context.wrap_socket(plain, server_hostname="localhost") as tls:
                    tls.sendall(b"hello")
                    print("GOT", tls.recv(100).decode(), tls.version(), flush=True)
                    tls.unwrap()
                """,
            ])
            try loop.run { server.ended == 2 }
            let said = try client.line(after: "GOT ")
            return ["\(bytes)", said]
        }
        #expect(findings == ["[1, 2, 3]", "hello TLSv1.3"])
    }

    @Test func `a peer that never finishes its handshake is given up`() throws {
        let findings = try onStreamThread { loop in
            let listener = try secured(timeout: 0.05)
            var open: [StreamListener.Connection] = []
            let notes = StreamNotes()
            listener.onConnection = { connection in
                connection.input.delegate = notes
                connection.input.schedule(in: loop, forMode: .default)
                connection.input.open()
                open.append(connection)
            }
            listener.schedule(in: loop, forMode: .default)
            let peer = try PlainSocket.connected(to: listener.port)
            try loop.run { !notes.events.isEmpty }
            let error = open[0].input.streamError as NSError?
            let rest = PlainSocket.receiveAll(peer)
            close(peer)
            return notes.events + ["\(error?.code == Int(ETIMEDOUT))", "\(rest)"]
        }
        #expect(findings == ["error", "true", "[]"])
    }

    /// Opens what a listener accepts, and keeps the errors of inputs by the order of arrival.
    private final class Opener {
        private(set) var open: [StreamListener.Connection] = []
        private(set) var codes: [Int: Int] = [:]
        private(set) var hasOpened: Set<Int> = []
        private var notes: [StreamNotes] = []

        init(_ listener: StreamListener, _ loop: RunLoop, startsTLS: TLSSettings? = nil) {
            listener.onConnection = { [unowned self] connection in
                let index = open.count
                let notes = StreamNotes { [unowned self] stream, event in
                    switch event {
                    case .openCompleted:
                        hasOpened.insert(index)
                        guard let startsTLS else { return }
                        _ = stream.setProperty(startsTLS as AnyObject, forKey: .tlsSettingsKey)
                    case .errorOccurred: codes[index] = (stream.streamError as NSError?)?.code
                    default: break
                    }
                }
                self.notes.append(notes)
                open.append(connection)
                connection.input.delegate = notes
                connection.input.schedule(in: loop, forMode: .default)
                connection.input.open()
            }
            listener.schedule(in: loop, forMode: .default)
        }
    }

    @Test(arguments: [false, true])
    func `a peer that never finishes its handshake is given up after 30 seconds`(later: Bool) throws {
        let findings = try onStreamThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            var configuration = StreamListener.Configuration()
            let settings = try TLSServerTests.settings()
            if !later { configuration.tls = settings }
            let listener = try StreamListener(port: 0, host: "localhost", configuration: configuration)
            let opener = Opener(listener, loop, startsTLS: later ? settings : nil)
            let peer = try PlainSocket.connected(to: listener.port)
            defer { close(peer) }
            while opener.open.isEmpty || later && opener.hasOpened.isEmpty { loop.pass() }
            // A byte is no progress.
            PlainSocket.send([22], on: peer)
            loop.pass()
            var codes: [Int?] = []
            for seconds in [StreamListener.Configuration().handshakeTimeout! - 0.5, 1.0] {
                clock.advance(by: seconds)
                loop.pass()
                codes.append(opener.codes[0])
            }
            return ["\(codes == [nil, Int(ETIMEDOUT)])", "\(PlainSocket.receiveAll(peer))"]
        }
        #expect(findings == ["true", "[]"])
    }

    /// A listener that bears three unfinished handshakes, and peers that do not finish theirs.
    private static func crowded(by count: Int, _ loop: RunLoop) throws -> (
        listener: StreamListener, opener: Opener, peers: [Int32]
    ) {
        var configuration = StreamListener.Configuration()
        configuration.tls = try TLSServerTests.settings()
        configuration.maximumUnfinishedHandshakes = 3
        let listener = try StreamListener(port: 0, host: "localhost", configuration: configuration)
        let opener = Opener(listener, loop)
        return (listener, opener, try (0..<count).map { _ in try PlainSocket.connected(to: listener.port) })
    }

    @Test func `of more unfinished handshakes than the limit the oldest are given up`() throws {
        #expect(StreamListener.Configuration().maximumUnfinishedHandshakes == 1_024)
        let findings = try onStreamThread { loop in
            let (listener, opener, peers) = try Self.crowded(by: 5, loop)
            defer { for peer in peers { close(peer) } }
            try loop.run { opener.codes.count == 2 }
            let first = opener.codes == [0: Int(ECONNABORTED), 1: Int(ECONNABORTED)]
            // They hear of it.
            let heard = (PlainSocket.receiveAll(peers[0]), PlainSocket.receiveAll(peers[1])) == ([], [])
            // An honest client is served nevertheless, and when it is, counts no longer.
            let (input, output) = securedStreams(UInt16(listener.port))
            let notes = StreamNotes()
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { opener.hasOpened.contains(5) && notes.events.contains("open") }
            let third = opener.codes[2] == Int(ECONNABORTED)
            let late = try PlainSocket.connected(to: listener.port)
            defer { close(late) }
            try loop.run { opener.open.count == 7 }
            loop.pass()
            let rest = opener.codes.count == 3
            input.close()
            output.close()
            return ["\(first)", "\(heard)", "\(third)", "\(rest)"]
        }
        #expect(findings == ["true", "true", "true", "true"])
    }

    @Test func `in a run that returns after a source a crowd of handshakes is held to the limit too`() throws
    {
        let findings = try onStreamThread { loop in
            let (listener, opener, peers) = try Self.crowded(by: 60, loop)
            defer {
                for peer in peers { close(peer) }
                withExtendedLifetime(listener) {}
            }
            // A handshake that has begun has a source; a connection that waits to be opened has none.
            let sources = { LiveObject.census?[.source] ?? 0 }
            let before = sources()
            var most = 0
            try loop.run {
                most = max(most, sources() - before)
                return opener.codes.count == 57
            }
            return ["\(most <= 6)", "\(opener.codes.values.allSatisfy { $0 == Int(ECONNABORTED) })"]
        }
        #expect(findings == ["true", "true"])
    }

    // MARK: - Unix-domain sockets

    @Test func `a Unix socket is made and removed`() throws {
        let path = temporaryPath()
        let findings = try onStreamThread { loop in
            var configuration = StreamListener.Configuration()
            configuration.permissions = 0o600
            let server = EchoServer(try StreamListener(unixPath: path, configuration: configuration), loop)
            var status = stat()
            lstat(path, &status)
            let tally = Tally()
            Thread.detachNewThread { [self] in
                guard let descriptor = try? PlainSocket.connected(toPath: path) else {
                    return tally.add(false)
                }
                tally.add(talk(descriptor, [1, 2, 3]) == [1, 2, 3])
                close(descriptor)
            }
            try loop.run { server.ended == 1 }
            try waitFor("the client") { tally.done == 1 ? () : nil }
            server.listener.close()
            return [
                "\(tally.right)", "\(status.st_mode & 0o777 == 0o600)", "\(server.remotePorts)",
                "\(access(path, F_OK) == 0)", "\(server.listener.port)",
            ]
        }
        #expect(findings == ["1", "true", "[0]", "false", "0"])
    }

    @Test func `a file left over is replaced and one in use is not`() throws {
        let path = temporaryPath()
        // Left over: bound, and closed without being removed.
        close(try PlainSocket.listening(atPath: path))
        let first = try StreamListener(unixPath: path)
        #expect(throws: NSError.self) { try StreamListener(unixPath: path) }
        #expect(first.isListening && access(path, F_OK) == 0)
        // Not ours any more: it stays when the first is closed.
        unlink(path)
        let second = try StreamListener(unixPath: path)
        first.close()
        #expect(access(path, F_OK) == 0)
        second.close()
        #expect(access(path, F_OK) != 0)
        // What is no socket is never replaced.
        try Data([1]).write(to: URL(fileURLWithPath: path))
        #expect(throws: NSError.self) { try StreamListener(unixPath: path) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1]))
        unlink(path)
        close(try PlainSocket.listening(atPath: path))
        var configuration = StreamListener.Configuration()
        configuration.replacesStaleSocket = false
        let failure = #expect(throws: NSError.self) {
            try StreamListener(unixPath: path, configuration: configuration)
        }
        #expect(failure?.code == Int(EADDRINUSE))
        unlink(path)
    }

    @Test func `a listener can have a name in the abstract space`() throws {
        let name = "\0rondo-\(UUID().uuidString)"
        let findings = try onStreamThread { loop in
            let server = EchoServer(try StreamListener(unixPath: name), loop)
            let (input, output) = streamsToUnixSocket(name)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { output.streamStatus == .open }
            _ = output.writeAll([1, 2])
            try loop.run { notes.events.contains("bytes") }
            let bytes = input.bytes().1
            input.close()
            output.close()
            try loop.run { server.ended == 1 }
            return ["\(bytes)"]
        }
        #expect(findings == ["[1, 2]"])
    }
}
