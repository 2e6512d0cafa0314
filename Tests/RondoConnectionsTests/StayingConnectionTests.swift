import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoCore
@testable import RondoStreams

/// A connection between two loads: it stays in its loop for the second one, if that begins while the first one ends.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct StayingConnectionTests {
    /// The connection to `server` that is kept in the pool, so that it can be looked at.
    ///
    /// `@unchecked Sendable`: looked at on the loop's thread, while that serves it.
    private final class Kept: @unchecked Sendable {
        private let link: HTTPLink

        init(_ server: TestServer) throws {
            try load(server.url())
            let key = PoolKey(host: "127.0.0.1", port: Int(server.port), tls: nil)
            link = try #require(Pool.shared.take(for: key))
            Pool.shared.add(link)
        }

        /// In how many places it is scheduled, and whether that is because it stays.
        var standing: String { "\(link.channel.places.count) \(link.hasStayed ? "stays" : "-")" }
    }

    /// Answers until the client goes.
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond(body: "ok")
            }
        }
    }

    /// A load that is `next` of another one: noted are the standings of the connection.
    private static func begin(
        _ server: TestServer, _ kept: Kept, _ log: EventLog,
        onFinish next: @escaping @Sendable () -> Void = {}
    ) {
        let recorder = Recorder { call, _ in
            switch call {
            case .response: log.note("response: \(kept.standing)")
            case .finish:
                log.note("finish: \(kept.standing)")
                next()
            case .fail: log.note("fail")
            default: break
            }
        }
        _ = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
    }

    @Test func `the next load finds it where it is, and after the last it leaves`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) { Self.begin(server, kept, log) { Self.begin(server, kept, log) } }
            defer { log.note("end: \(kept.standing)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        let one = ["response: 1 -", "finish: 1 stays"]
        #expect(log.entries == one + one + one + ["end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test func `it does not stay where the run returns after each source, or somebody observes the loop`()
        throws
    {
        for isObserved in [false, true] {
            let (server, log) = (try Self.server(), EventLog())
            let kept = try Kept(server)
            try onLoopThread { loop in
                Self.begin(server, kept, log) { Self.begin(server, kept, log) }
                if isObserved {
                    let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in }
                    loop.add(observer, forMode: .default)
                    loop.runOut()
                } else {
                    loop.run { log.entries.count == 4 }
                }
            }
            #expect(log.entries == ["response: 1 -", "finish: 0 -", "response: 1 -", "finish: 0 -"])
            #expect(server.accepted == 1)
        }
    }

    @Test func `it leaves in a run of the loop inside of itself`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let second = Recorder()
        second.answerWillSend { request, _, _ in
            log.note("asked: \(kept.standing)")
            _ = RunLoop.current.run(in: .default, for: 0, returnAfterSourceHandled: false)
            log.note("run: \(kept.standing)")
            return request
        }
        let result = try onLoopThread { loop in
            // Without a path: so the delegate is asked, in the first turn.
            Self.begin(server, kept, log) {
                _ = URLConnection(request: URLRequest(url: server.url("")), delegate: second)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays", "asked: 1 stays", "run: 0 -"])
        #expect(second.text == "ok")
        #expect(server.accepted == 1)
    }

    @Test func `it leaves where the load that was begun is cancelled, and the mode is empty then`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                let second = URLConnection(request: URLRequest(url: server.url()), delegate: nil)
                // In the next turn, when the first load is over.
                loop.perform { second?.cancel() }
            }
            defer { log.note("end: \(kept.standing)") }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays", "end: 0 -"])
        #expect(server.accepted == 1)
    }

    @Test func `it leaves before the run returns`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        try onLoopThread { loop in
            Self.begin(server, kept, log) {
                Self.begin(server, kept, log)
                loop.stop()
            }
            #expect(loop.runOut() == .stopped)
            log.note("stopped: \(kept.standing)")
            loop.runOut()
        }
        #expect(
            log.entries == [
                "response: 1 -", "finish: 1 stays", "stopped: 0 -", "response: 1 -", "finish: 1 stays",
            ])
        #expect(server.accepted == 1)
    }

    @Test func `another thread has it all the same`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                let elsewhere = Recorder { call, _ in
                    if call == .response { log.note("elsewhere: \(kept.standing)") }
                }
                _ = try? load(server.url(), recorder: elsewhere)
                log.note("\(elsewhere.text): \(kept.standing)")
                Self.begin(server, kept, log)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(
            log.entries == [
                "response: 1 -", "finish: 1 stays", "elsewhere: 1 -", "ok: 0 -", "response: 1 -",
                "finish: 1 stays",
            ])
        #expect(server.accepted == 1)
    }

    @Test func `it can be closed`() throws {
        let (server, log) = (try Self.server(), EventLog())
        let kept = try Kept(server)
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                URLConnection.closeIdleConnections()
                let second = Recorder { call, _ in if call == .finish { log.note("second") } }
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: second)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(log.entries == ["response: 1 -", "finish: 1 stays", "second"])
        #expect(server.accepted == 2)
    }

    /// One that may be sent twice is sent at once, and again if need be; the other one only over what is alive.
    @Test(arguments: ["GET", "POST"])
    func `where its server has closed it without a word, the next request does not fail`(method: String)
        throws
    {
        let hasClosed = Latch()
        let server = try TestServer { peer in
            let isFirst = peer.number == 0
            _ = try peer.readRequest()
            try peer.respond(body: "first")
            if isFirst {
                _ = try peer.readRequest()
                try peer.respond(body: "second")
                peer.finish()
                hasClosed.open()
            }
            peer.waitForEnd()
        }
        let log = EventLog()
        let kept = try Kept(server)
        let next = Recorder()
        let result = try onLoopThread { loop in
            Self.begin(server, kept, log) {
                #expect(throws: Never.self) { try hasClosed.wait() }
                var request = URLRequest(url: server.url())
                request.httpMethod = method
                _ = URLConnection(request: request, delegate: next)
            }
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(next.calls == ["response 200", "data", "finish"])
        #expect(server.accepted == 2)
        #expect(server.requests.map(\.method) == ["GET", "GET", method])
    }
}
