import Rondo
import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Exchanges alone, with a pool and an owner of their own.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ExchangeReadingTests {
    /// Notes what an exchange tells it.
    ///
    /// `@unchecked Sendable`: used on the thread of one loop.
    private final class Owner: ExchangeOwner, ChannelGate, @unchecked Sendable {
        private(set) var events: [String] = []
        var hasEnded: Bool { events.last == "end" || events.last == "failed" }
        var maySend: Bool { true }
        var gate: any ChannelGate { self }

        func admit(_ event: () -> Void, onRefusal: () -> Void) { event() }

        func received(_ event: ExchangeEvent) {
            switch event {
            case .head: events.append("head")
            case .body(let data): events.append("body \(data.count)")
            case .end: events.append("end")
            case .failed: events.append("failed")
            default: break
            }
        }
    }

    private static let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// Starts an exchange with a new connection or a parked one, which stops reading at once, as that of a download does which
    /// asks for the rest of its body while earlier bytes wait for its delegate.
    private static func beginWithoutReading(
        _ server: TestServer, _ owner: Owner, of pool: ConnectionPool, in queue: SharedQueue,
        mayReuse: Bool = false
    ) throws -> HTTP1Exchange {
        let key = ConnectionKey(host: "127.0.0.1", port: Int(server.port), tls: nil)
        let request = LoadRequest(URLRequest(url: server.url()))
        let outgoing = try OutgoingRequest.request(of: request, from: OutgoingRequest.Draft(of: request))
        let origin = pool.findOrMakeOrigin(of: key.server)
        let address = try #require(request.address)
        switch origin.lease(
            key, of: queue.loop, at: nil, for: LeaseWait(priority: 0) {}, mayReuse: mayReuse)
        {
        case .granted(let lease):
            let exchange = try #require(
                Route(to: address, of: pool, tls: nil, Route.Options()).makeExchange(
                    over: lease, for: owner, reporting: ExchangeReporting(steps: false, times: false))
                    as? HTTP1Exchange)
            exchange.start(outgoing, in: ModeQueues(first: queue, others: []), label: nil)
            exchange.stopReading()
            return exchange
        case .wait: throw NeverCame(description: "no connection may be opened")
        }
    }

    /// - Returns: What was told while the exchange did not read, and in all.
    private static func load(startsBeforeOpening: Bool) throws -> [[String]] {
        let answered = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(response)
            answered.open()
            peer.waitForEnd()
        }
        return try onLoopThread { loop -> [[String]] in
            let queue = SharedQueue.join(loop, .default)
            defer { queue.leave() }
            let (owner, pool) = (Owner(), ConnectionPool())
            defer { pool.retire() }
            do {
                let exchange = try beginWithoutReading(server, owner, of: pool, in: queue)
                defer { _ = exchange.end(registeredAt: nil) }
                var early: [String] = []
                if !startsBeforeOpening {
                    // The request is sent all the same.
                    loop.run { answered.isOpen }
                    try answered.wait()
                    loop.runInVain(for: 0)
                    // A channel that is read has its loop look at the socket again and again.
                    early = owner.events + (exchange.channel.wantsRead ? ["the socket is watched"] : [])
                }
                exchange.startReading()
                loop.run { owner.hasEnded }
                return [early, owner.events]
            } catch {
                return [["threw \(error)"]]
            }
        }
    }

    @Test func `a connection that was parked between its requests is parked again after each`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send(Self.response)
            }
        }
        let parked = try onLoopThread { loop -> Result<[Bool], any Error> in
            let queue = SharedQueue.join(loop, .default)
            defer { queue.leave() }
            let pool = ConnectionPool(maximumReady: 0)
            defer { pool.retire() }
            return Result {
                try (1...3).map { _ in
                    let owner = Owner()
                    let exchange = try Self.beginWithoutReading(
                        server, owner, of: pool, in: queue, mayReuse: true)
                    exchange.startReading()
                    loop.run { owner.hasEnded }
                    _ = exchange.end(registeredAt: nil)
                    return pool.idleCount == 1 && !exchange.channel.isOpen
                }
            }
        }.get()
        #expect(parked == [true, true, true])
        #expect(server.accepted == 1)
    }

    @Test(arguments: [false, true])
    func `UC-12 an exchange that stops reading while its connection is opened reads when it is told to start`(
        startsBeforeOpening: Bool
    ) throws {
        #expect(
            try Self.load(startsBeforeOpening: startsBeforeOpening) == [[], ["head", "body 2", "end"]])
    }
}
