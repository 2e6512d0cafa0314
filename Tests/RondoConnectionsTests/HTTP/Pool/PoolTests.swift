import Rondo
import RondoCore
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections
@testable import RondoStreams

extension ConnectionPool {
    /// Keeps a connection as at the end of its exchange.
    ///
    /// - Parameter queue: The queue with which it stays registered; nil if it leaves all loops.
    func add(
        _ connection: ServerConnection, of loop: RunLoop = .loader, registeredAt queue: SharedQueue? = nil
    ) {
        let wait = LeaseWait(priority: 0.5) {}
        switch findOrMakeOrigin(of: connection.key.server).lease(
            connection.key, of: loop, at: nil, for: wait, mayReuse: false)
        {
        case .granted(let granted):
            var lease = granted
            lease.connection = .ready(connection)
            lease.keep(registeredAt: queue)
        case .wait: Issue.record("there is room")
        }
    }

    /// An idle connection, for a loop that has none of its own but those of `add(_:)`.
    func take(for key: ConnectionKey) -> ServerConnection? {
        let origin = findOrMakeOrigin(of: key.server)
        return switch origin.takeIdle(key, of: .loader, at: nil) {
        case .ready(let connection): connection
        case .parked(let socket): HTTP1Connection(resuming: socket, for: key, of: origin)
        case nil: nil
        }
    }
}

/// Tests kept connections that no load uses. Each test has a pool of its own.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct PoolTests {
    /// A server that answers, and notes when the client has closed its side.
    private static func server(_ ended: Latch, afterAnswer: @escaping @Sendable (TestPeer) -> Void = { _ in })
        throws -> TestServer
    {
        try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "kept")
            afterAnswer(peer)
            peer.waitForEnd()
            ended.open()
        }
    }

    private static func key(_ server: TestServer) -> ConnectionKey {
        ConnectionKey(host: "127.0.0.1", port: Int(server.port), tls: nil)
    }

    /// A connection over which a request was answered, and which is in no pool. (Those of the process are closed
    /// where suites begin and end.)
    private static func usedConnection(_ key: ConnectionKey, _ load: () throws -> Void) throws
        -> ServerConnection
    {
        for _ in 0..<3 {
            try load()
            if let connection = ConnectionPool.shared.take(for: key) { return connection }
        }
        throw NeverCame(description: "no connection was kept")
    }

    private static func usedConnection(_ server: TestServer) throws -> ServerConnection {
        try usedConnection(key(server)) { try load(server.url()) }
    }

    @Test func `of all pools together the connection is closed that has been idle longest`() throws {
        let ended = [Latch(), Latch()]
        let servers = try ended.map { try Self.server($0) }
        let connections = try servers.map { try Self.usedConnection($0) }
        var limits = ConnectionLimits()
        limits.idleConnections = 1
        let budget = ConnectionBudget(limits)
        let pools = servers.map { _ in ConnectionPool(limits, within: budget) }
        for (pool, connection) in zip(pools, connections) { pool.add(connection) }
        try ended[0].wait()
        #expect(connections.map(\.channel.isOpen) == [false, true])
        pools[1].closeAll()
    }

    /// Counts the searches for the oldest idle connection.
    private final class SearchedPool: BudgetPool {
        let searches = Box(0)

        var idleServers: [(server: ConnectionKey.Server, since: LoopInstant)] {
            searches.mutate { $0 += 1 }
            return []
        }
        func closeOldest(to server: ConnectionKey.Server, idleSince since: LoopInstant) -> LoopInstant? {
            nil
        }
        func closeAll() {}
    }

    @Test func `where no connection may be idle, one that is free is closed without a search for the oldest`()
        throws
    {
        let ended = Latch()
        let server = try Self.server(ended)
        let connection = try Self.usedConnection(server)
        var limits = ConnectionLimits()
        limits.idleConnections = 0
        let budget = ConnectionBudget(limits)
        let searched = SearchedPool()
        budget.add(searched)
        let pool = ConnectionPool(limits, within: budget)
        pool.add(connection)
        try ended.wait()
        #expect(!connection.channel.isOpen)
        #expect(budget.counts.inUse == 0 && budget.counts.idle == 0 && searched.searches.value == 0)
    }

    @Test func `a kept connection that no load uses is closed when its time is over`() throws {
        let ended = Latch()
        let server = try Self.server(ended)
        let connection = try Self.usedConnection(server)
        let pool = ConnectionPool()
        pool.add(connection)
        pool.sweep(now: LoopClock.systemNow.advanced(bySeconds: 54))
        #expect(connection.channel.isOpen)
        pool.sweep(now: LoopClock.systemNow.advanced(bySeconds: 56))
        #expect(!connection.channel.isOpen)
        try ended.wait()
    }

    /// The clocks of two loops cannot be compared: what was kept by one in whose time it is tomorrow must
    /// neither stay until then nor make others stay.
    @Test func `idle time is the machine's, whatever clock a loop has`() throws {
        let ended = [Latch(), Latch()]
        let servers = try ended.map { try Self.server($0) }
        let pool = ConnectionPool()
        for (server, advance) in zip(servers, [86_400.0, 0]) {
            let connection = try SentConnection(connection: Self.usedConnection(server))
            try onLoopThread { loop in
                let clock = ManualClock(advancesAutomatically: false)
                clock.attach(to: loop)
                clock.advance(by: advance)
                pool.add(connection.connection)
            }
        }
        pool.sweep(now: LoopClock.systemNow.advanced(bySeconds: 56))
        for ended in ended { try ended.wait() }
    }

    /// A connection on its way to another thread.
    ///
    /// `@unchecked Sendable`: the test does not use the connection once the loop's thread has it, and waits for that thread.
    private struct SentConnection: @unchecked Sendable {
        let connection: ServerConnection
    }

    /// The server's end, or bytes that no request has asked for, such as its answer to a request that never was.
    @Test(arguments: [false, true])
    func `a kept connection that its server has closed goes soon, and the others stay`(speaks: Bool) throws {
        let (ended, ends) = (Latch(), Latch())
        let server = try Self.server(ended) { peer in
            guard peer.number == 0 else { return }
            ends.waitOrRecord()
            if speaks { try? peer.send("HTTP/1.1 408 Request Timeout\r\n\r\n") } else { peer.finish() }
        }
        let pool = ConnectionPool(secondsBetweenLooks: 0.01)
        let dying = try Self.usedConnection(server)
        let living = try Self.usedConnection(server)
        for connection in [living, dying] { pool.add(connection) }
        // It comes back by itself after each look.
        pool.sweep(now: LoopClock.systemNow)
        ends.open()
        // By the pool itself.
        try ended.wait()
        #expect(pool.take(for: Self.key(server)) === living)
        #expect(pool.take(for: Self.key(server)) == nil)
        living.channel.close()
    }

    @Test func `a kept connection over TLS that its server has closed goes soon, and the others stay`() throws
    {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            global kept
            try: kept.append(tls)
            except NameError: kept = [tls]
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            if len(kept) >= 2:
                print("READY", flush=True)
                sys.stdin.readline()
                kept[0].unwrap()
                print("HEARD", flush=True)
            """)
        defer { server.terminate() }
        let pool = ConnectionPool(secondsBetweenLooks: 0.01)
        var tls = TLSSettings()
        tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        let key = ConnectionKey(host: "localhost", port: Int(port), tls: tls)
        let connections = try (0..<2).map { _ in
            try Self.usedConnection(key) {
                try load(url("https://localhost:\(port)/")) { $0.trustTestAuthority() }
            }
        }
        for connection in connections.reversed() { pool.add(connection) }
        _ = try server.line(after: "READY")
        server.tell("go")
        // It waits for our close_notify.
        _ = try server.line(after: "HEARD")
        #expect(pool.take(for: key) === connections[1])
        #expect(pool.take(for: key) == nil)
        connections[1].channel.close()
    }

    /// Messages of TLS itself are no sign of death: new keys here, session tickets elsewhere.
    @Test func `a kept connection whose TLS alone has something to say stays`() throws {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.path(.good), "-key",
            certificates.keyPath,
        ])
        defer { server.terminate() }
        let port = Int(try server.port(after: "ACCEPT "))
        let recorder = Recorder()
        let thread = LoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: url("https://localhost:\(port)/")), delegate: recorder,
                startImmediately: false)
            connection?.trustTestAuthority()
            connection?.start()
            loop.runOut()
        }
        _ = try server.line(after: "GET ")
        server.tell("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok")
        try thread.value()
        #expect(recorder.text == "ok\n")
        var tls = TLSSettings()
        tls.certificateAuthorities = [.file(certificates.authorityPath)]
        let key = ConnectionKey(host: "localhost", port: port, tls: tls)
        let connection = try #require(ConnectionPool.shared.take(for: key))
        let pool = ConnectionPool()
        pool.add(connection)
        // A command of s_server's: new keys.
        server.tell("k")
        try waitFor("the new keys") { connection.channel.hasUnreadBytes ? () : nil }
        pool.sweep(now: LoopClock.systemNow)
        #expect(pool.take(for: key) === connection)
        connection.channel.close()
    }

    // MARK: - Parked

    /// The gate of a channel that one thread uses, that of its loop.
    private final class OneThread: ChannelGate {
        func admit(_ event: () -> Void, onRefusal: () -> Void) { event() }
    }

    /// Not by a load, since a suite that ends would close what another one has put into the process's pool.
    private static func answer(to target: String, over connection: ServerConnection) throws -> String {
        let kept = SentConnection(connection: connection)
        return try onLoopThread { loop in
            let channel = kept.connection.channel
            var received: [UInt8] = []
            channel.handler = { event in
                guard case .readable = event else { return }
                var buffer = [UInt8](repeating: 0, count: 4_096)
                let read = try? buffer.withUnsafeMutableBytes { try channel.read(into: $0) }
                if case .bytes(let count) = read { received += buffer.prefix(count) }
            }
            channel.registration.beginAccess(to: channel, by: OneThread())
            defer { channel.registration.endAccess() }
            channel.schedule(in: loop, forMode: .work)
            channel.wantsRead = true
            let request = Array("GET \(target) HTTP/1.1\r\nHost: server\r\n\r\n".utf8)
            let written = try? request.withUnsafeBytes { try channel.write($0) }
            #expect(written == request.count)
            loop.run(.work) { String(decoding: received, as: UTF8.self).hasSuffix(target) }
            channel.handler = nil
            channel.close()
            return String(decoding: received, as: UTF8.self).components(separatedBy: "\r\n").last ?? ""
        }
    }

    @Test func `of many kept connections the last is ready, and the others serve the next request too`()
        throws
    {
        let server = try TestServer { peer in
            while true { try peer.respond(body: "\(peer.number)\(try peer.readRequest().target)") }
        }
        let connections = try (0..<3).map { _ in try Self.usedConnection(server) }
        let pool = ConnectionPool(maximumReady: 1)
        for connection in connections { pool.add(connection) }
        #expect(connections.map(\.channel.isOpen) == [false, false, true])
        let address = connections[2].channel.remoteAddress
        var texts: [String] = []
        for number in (0..<3).reversed() {
            let connection = try #require(pool.take(for: Self.key(server)))
            #expect(connection.isReused && (connection === connections[number]) == (number == 2))
            #expect(
                connection.key == Self.key(server) && address != nil
                    && connection.channel.remoteAddress == address)
            texts.append(try Self.answer(to: "/again", over: connection))
        }
        #expect(texts == ["2/again", "1/again", "0/again"])
        #expect(pool.take(for: Self.key(server)) == nil)
    }

    @Test
    func `a connection left in its loop is parked when it leaves, if its place in line has come meanwhile`()
        throws
    {
        let server = try TestServer { peer in
            while true { try peer.respond(body: "\(peer.number)\(try peer.readRequest().target)") }
        }
        let connections = try (0..<2).map { _ in try SentConnection(connection: Self.usedConnection(server)) }
        let pool = ConnectionPool(maximumReady: 1)
        try onLoopThread { loop in
            let queue = SharedQueue.join(loop, .default)
            connections[0].connection.channel.schedule(with: queue)
            pool.add(connections[0].connection, of: loop, registeredAt: queue)
            pool.add(connections[1].connection, of: loop)
            #expect(connections.map(\.connection.channel.isOpen) == [true, true])
            pool.findOrMakeOrigin(of: Self.key(server).server).unregister(connections[0].connection)
            queue.leave()
        }
        #expect(connections.map(\.connection.channel.isOpen) == [false, true])
        let (ready, parked) = (pool.take(for: Self.key(server)), pool.take(for: Self.key(server)))
        #expect(ready === connections[1].connection)
        for connection in [ready, parked] {
            #expect(try Self.answer(to: "/again", over: #require(connection)).hasSuffix("/again"))
        }
    }

    @Test(arguments: ["time", "server", "everything"])
    func `a parked connection goes when its time is over, its server ends it, or all are closed`(why: String)
        throws
    {
        let (ended, ends) = (Latch(), Latch())
        let server = try Self.server(ended) { peer in
            guard why == "server" else { return }
            ends.waitOrRecord()
            peer.finish()
        }
        let pool = ConnectionPool(secondsBetweenLooks: why == "server" ? 0.01 : 5, maximumReady: 0)
        let connection = try Self.usedConnection(server)
        pool.add(connection)
        #expect(!connection.channel.isOpen)
        switch why {
        case "time":
            pool.sweep(now: LoopClock.systemNow.advanced(bySeconds: 54))
            #expect(pool.idleCount == 1)
            pool.sweep(now: LoopClock.systemNow.advanced(bySeconds: 56))
            #expect(pool.idleCount == 0)
        case "server": ends.open()
        default: pool.closeAll()
        }
        try ended.wait()
    }
}
