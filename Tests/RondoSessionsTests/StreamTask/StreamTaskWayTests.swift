import Rondo
import RondoTestSupport
import RondoTesting
import Testing

/// The ways of stream tasks: proxies, identities, times, what is told of them.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct StreamTaskWayTests {
    private static func echoing() throws -> TestServer {
        try TestServer { peer in
            while true { try peer.send(try peer.readLine() + "\n") }
        }
    }

    /// Sends a line and notes what comes back.
    private static func echo(_ task: URLSessionStreamTask) async throws -> String {
        task.resume()
        try await task.write(Data("hello\n".utf8), timeout: 30)
        let (data, _) = try await task.readData(ofMinLength: 6, maxLength: 100, timeout: 30)
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    @Test func `US-89 a stream task connects through a tunnel of the session's HTTP proxy`() async throws {
        let server = try Self.echoing()
        let proxy = try TestServer { peer in
            let request = try peer.readRequest()
            #expect(request.lines.first == "CONNECT 127.0.0.1:\(server.port) HTTP/1.1")
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            try peer.relay(to: server.port)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.goBy("HTTP", proxy.port)
        let session = URLSession(configuration: configuration)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        #expect(try await Self.echo(task) == "hello\n")
        #expect(proxy.requests.count == 1)
        task.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `US-89 a stream task connects through the session's SOCKS server`() async throws {
        let server = try Self.echoing()
        let (proxy, port) = try socksServer()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.goBy("SOCKS", port)
        let session = URLSession(configuration: configuration)
        let task = session.streamTask(withHostName: "localhost", port: Int(server.port))
        #expect(try await Self.echo(task) == "hello\n")
        proxy.terminate()
        try waitFor("the proxy's port to be closed") { isListening(port) ? nil : () }
        let late = session.streamTask(withHostName: "localhost", port: Int(server.port))
        let error = await #expect(throws: URLError.self) { try await Self.echo(late) }
        #expect(error?.code == .cannotConnectToHost)
        task.cancel()
        session.finishTasksAndInvalidate()
    }

    @Test(arguments: [true, false])
    func `US-89 US-55 a server that asks for a client certificate gets the delegate's`(
        _ hasIdentity: Bool
    ) throws {
        let (process, port) = try demandingServer()
        defer { withExtendedLifetime(process) {} }
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath(.client))
        let (teller, log) = (StreamNotes(identity: hasIdentity ? identity : nil), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(port))
        task.startSecureConnection()
        task.write(Data("abc".utf8), timeout: 30) { _ in }
        task.readData(ofMinLength: 3, maxLength: 3, timeout: 30) { log.note(readText($0, $1, $2)) }
        task.resume()
        try waitFor("the answer") { log.entries.isEmpty ? nil : () }
        #expect(teller.log.entries.prefix(2) == ["challenge true", "identity"])
        #expect(log.entries.first == (hasIdentity ? "cba" : "error -1206"))
        task.cancel()
        try teller.waitForEnd()
        session.invalidateAndCancel()
    }

    @Test
    func
        `US-69 US-89 the resource timeout ends a stream task with -1001, and does not run while it is suspended`()
        throws
    {
        let end = Latch()
        let server = try TestServer { _ in try end.wait() }
        let (teller, log) = (StreamNotes(), EventLog())
        let counts = try onHeldLoop { loop, clock -> [Int] in
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForResource = 5
            let session = URLSession(configuration: configuration, delegate: teller, runLoop: loop)
            let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { log.note(readText($0, $1, $2)) }
            var counts: [Int] = []
            let pass = { (seconds: TimeInterval) in
                loop.pass(seconds, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
                counts.append(log.entries.count + teller.log.entries.count)
            }
            task.resume()
            loop.passUntil { server.accepted == 1 }
            pass(2)
            task.suspend()
            // In this pass the loop's thread stops the task's clock, in the next such one it lets it go on.
            pass(0)
            pass(100)
            task.resume()
            pass(0)
            pass(2)
            pass(2)
            session.invalidateAndCancel()
            loop.runOut()
            return counts
        }
        #expect(counts == [0, 0, 0, 0, 0, 2])
        #expect(log.entries == ["error -1001"])
        #expect(teller.log.entries == ["complete -1001"])
        end.open()
    }

    @Test func `US-69 US-70 the times of a stream task go on if it waits for a network after a suspension`()
        throws
    {
        let (teller, log) = (StreamNotes(), EventLog())
        let found = try onHeldLoop { loop, clock -> [[String]] in
            let configuration = URLSessionConfiguration.default
            configuration.connection.proxy = .direct
            configuration.waitsForConnectivity = true
            configuration.timeoutIntervalForResource = 5
            let session = URLSession(configuration: configuration, delegate: teller, runLoop: loop)
            // No route of TCP leads there.
            let task = session.streamTask(withHostName: "255.255.255.255", port: 80)
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 3) { log.note(readText($0, $1, $2)) }
            task.resume()
            // Behind the task's first step. The connection fails in the next pass, before the task stops its clocks.
            loop.perform { loop.perform { task.suspend() } }
            var found: [[String]] = []
            let pass = { (seconds: TimeInterval) in
                loop.pass(seconds, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
                found.append(log.entries + teller.log.entries)
            }
            pass(0)
            task.resume()
            pass(0)
            pass(4)
            pass(2)
            session.invalidateAndCancel()
            loop.runOut()
            return found
        }
        #expect(found == [[], [], ["error -1001"], ["error -1001", "complete -1001"]])
    }

    @Test(arguments: ["ended", "cancelled", "failed"])
    func `US-66 US-89 metrics come once, right before the last call, however a stream ends`(_ how: String)
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readLine()
            if how == "failed" { return peer.reset() }
            if how == "ended" { peer.finish() }
            peer.waitForEnd()
        }
        let teller = StreamNotes()
        teller.notesMetrics = true
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let before = Date()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        let asked = Latch()
        task.resume()
        task.write(Data("x\n".utf8), timeout: 0) { _ in asked.open() }
        try asked.wait()
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, _ in }
        if how == "cancelled" { task.cancel() } else { task.closeWrite() }
        try teller.waitForEnd()
        let code = ["ended": 0, "cancelled": -999, "failed": -1005][how] ?? 1
        #expect(teller.log.entries.suffix(2) == ["metrics true", "complete \(code)"])
        try #require(teller.metrics.count == 1)
        let metrics = teller.metrics[0]
        #expect(metrics.taskInterval.start >= before.addingTimeInterval(-0.01))
        #expect(metrics.taskInterval.end <= Date().addingTimeInterval(0.01))
        #expect(metrics.transactionMetrics.isEmpty && metrics.redirectCount == 0)
        session.invalidateAndCancel()
    }

    @Test func `US-86 US-89 the errors of a stream name its host and port`() throws {
        let refused = try RefusedPort()
        defer { withExtendedLifetime(refused) {} }
        let teller = StreamNotes()
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        let errors = Box<[URLError]>([])
        for host in ["127.0.0.1", "::1"] {
            let task = session.streamTask(withHostName: host, port: Int(refused.port))
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, error in
                if let error = error as? URLError { errors.value.append(error) }
            }
            task.resume()
            try waitFor("its error") { task.error == nil ? nil : () }
            #expect((task.error as? URLError)?.failingURL == errors.value.last?.failingURL)
        }
        let cancelled = session.streamTask(withHostName: "a.example", port: 7)
        cancelled.cancel()
        try waitFor("its error") { cancelled.error == nil ? nil : () }
        #expect(
            (errors.value + [cancelled.error as? URLError].compactMap { $0 }).map(
                \.failingURL?.absoluteString) == [
                    "tcp://127.0.0.1:\(refused.port)", "tcp://[::1]:\(refused.port)", "tcp://a.example:7",
                ])
        session.invalidateAndCancel()
    }

    // MARK: - Connectivity

    @Test func `US-32 US-70 a stream task that is cancelled does not tell that it waits for a network`()
        throws
    {
        let configuration = URLSessionConfiguration.default
        configuration.connection.proxy = .direct
        configuration.waitsForConnectivity = true
        let (delegate, queue) = (ConnectivityNotes(), OperationQueue())
        queue.isSuspended = true
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        // No route of TCP leads there.
        let task = session.streamTask(withHostName: "255.255.255.255", port: 80)
        task.resume()
        try waitFor("the call to wait for its queue") { queue.operationCount > 0 ? () : nil }
        task.cancel()
        queue.isSuspended = false
        try waitFor("the end") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
        #expect(delegate.log.entries == ["complete -999"])
        session.invalidateAndCancel()
    }

    @Test func `US-32 US-55 a stream task that is cancelled asks about no certificate`() throws {
        let (process, port) = try demandingServer()
        defer { withExtendedLifetime(process) {} }
        let (teller, queue) = (StreamNotes(), OperationQueue())
        queue.isSuspended = true
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: queue)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(port))
        task.startSecureConnection()
        task.resume()
        try waitFor("the challenge to wait for its queue") { queue.operationCount > 0 ? () : nil }
        task.cancel()
        queue.isSuspended = false
        try teller.waitForEnd()
        #expect(teller.log.entries == ["complete -999"])
        session.invalidateAndCancel()
    }

    /// Suspends a task that waits for a network, and notes behind that, in the same pass, whether no timer of less than
    /// five seconds runs.
    private final class Suspending: NSObject, URLSessionTaskDelegate, Sendable {
        let log = EventLog()
        private let loop: RunLoop
        private let clock: ManualClock

        init(_ loop: RunLoop, _ clock: ManualClock) {
            self.loop = loop
            self.clock = clock
        }

        func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
            task.suspend()
            loop.perform { [loop, clock, log] in
                let left = loop.nextTimerDate(forMode: .default)?.timeIntervalSince(clock.date) ?? 0
                log.note("\(left > 5)")
            }
        }
    }

    @Test
    func `US-30 US-70 a stream task that is suspended when it begins to wait for a network has no timer`()
        throws
    {
        let entries = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.default
            configuration.connection.proxy = .direct
            configuration.waitsForConnectivity = true
            // No timer for the whole task, which would be the next one.
            configuration.timeoutIntervalForResource = .infinity
            let delegate = Suspending(loop, clock)
            let session = URLSession(configuration: configuration, delegate: delegate, runLoop: loop)
            // No route of TCP leads there.
            let task = session.streamTask(withHostName: "255.255.255.255", port: 80)
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 3) { _, _, _ in }
            task.resume()
            // Behind the task's first step: its failure waits until it is resumed.
            loop.perform { loop.perform { task.suspend() } }
            for _ in 1...4 { loop.runInVain(for: 0) }
            task.resume()
            loop.passUntil { !delegate.log.entries.isEmpty }
            session.invalidateAndCancel()
            loop.runOut()
            return delegate.log.entries
        }
        // The timer that runs is that of the next attempt.
        #expect(entries == ["true"])
    }
}
