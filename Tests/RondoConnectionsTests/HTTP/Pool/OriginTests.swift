import Rondo
import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests which waiter may have a connection now.
@Suite(.leavesNoConnections) struct OriginStateTests {
    private static let now = LoopInstant(nanoseconds: 0)

    /// Origins that share a budget, as the process's do.
    private final class Origins {
        let budget: ConnectionBudget
        private let limits: ConnectionLimits

        init(perServer: Int = 10, inAll: Int = 10, idle: Int = 10, idleInAll: Int = 10) {
            var limits = ConnectionLimits()
            limits.connectionsPerServer = perServer
            limits.connections = inAll
            limits.idleConnectionsPerServer = idle
            limits.idleConnections = idleInAll
            self.limits = limits
            budget = ConnectionBudget(limits)
        }

        func origin(ranked ranks: [String: Float]? = nil) -> Server { Server(budget, limits, ranks) }
    }

    /// An origin without connections, which notes what is decided.
    ///
    /// `@unchecked Sendable`: a test's thread alone uses it.
    private final class Server: BudgetCandidate, @unchecked Sendable {
        private let budget: ConnectionBudget
        private var state: OriginState<Int, String>
        private(set) var admitted: [String] = []
        private let key = ConnectionKey(host: "a", port: 80, tls: nil)

        private let ranks: [String: Float]?

        /// - Parameter ranks: Of waiters, 0 where there is none; nil: all have the same. Those with ranks are a group.
        init(_ budget: ConnectionBudget, _ limits: ConnectionLimits, _ ranks: [String: Float]?) {
            self.budget = budget
            self.ranks = ranks
            state = OriginState(
                limit: limits.connectionsPerServer, idleLimit: limits.idleConnectionsPerServer)
        }

        var isUnused: Bool { state.isUnused }

        /// "open", the number of a connection, or nil with the number of the waiter in `waiterID`.
        @discardableResult
        func lease(_ waiter: String, mayReuse: Bool = true) -> String? {
            switch state.lease(key, of: nil, for: waiter, within: budget, mayReuse: mayReuse) {
            case .open: return "open"
            case .reuse(let number): return "\(number)"
            case .wait(_, let waiterID, let lacksBudget):
                self.waiterID = waiterID
                if lacksBudget { budget.enqueue(self, waiterID: waiterID) }
                return nil
            }
        }

        private(set) var waiterID = 0

        /// - Returns: Connections that are dropped.
        @discardableResult
        func end(keeping number: Int? = nil) -> [Int] {
            state.endLease()
            _ = budget.giveBack(toIdle: number != nil)
            let dropped = number.map {
                state.keep($0, for: key, of: nil, now: OriginStateTests.now, within: budget)
            }
            if let waiter = state.admit(within: budget) { admitted.append(waiter) }
            if let waiterID = state.admissibleWaiterID {
                budget.enqueue(self, waiterID: waiterID)
            } else {
                budget.admit()
            }
            return dropped ?? []
        }

        private var rank: ((String) -> Float)? {
            ranks.map { ranks in { ranks[$0] ?? 0 } }
        }

        var group: ObjectIdentifier {
            ranks == nil ? ObjectIdentifier(self) : ObjectIdentifier(Origins.self)
        }

        var topWaiter: RankedWaiter? { rank.flatMap { state.topWaiter(by: $0) } }

        func admitFirst() -> Int? {
            if let waiter = state.admit(within: budget, isQueued: true, rank: rank) {
                admitted.append(waiter)
            }
            return state.admissibleWaiterID
        }

        func withdraw(_ waiterID: Int) -> Bool { state.withdraw(waiterID) }

        func setLimit(_ limit: Int, idle: Int = 10) -> [Int] {
            let dropped = state.setLimits(limit, idle: idle, within: budget)
            if let waiterID = state.admissibleWaiterID { budget.enqueue(self, waiterID: waiterID) }
            return dropped
        }
    }

    @Test func `waiters for a connection are admitted in order`() {
        let origins = Origins(perServer: 1)
        let (a, b) = (origins.origin(), origins.origin())
        #expect(a.lease("1") == "open")
        #expect(a.lease("2") == nil)
        #expect(a.lease("3") == nil)
        #expect(b.lease("4") == "open")
        a.end()
        #expect(a.admitted == ["2"])
        a.end()
        #expect(a.admitted == ["2", "3"])
        a.end()
        b.end()
        #expect(a.isUnused && b.isUnused && b.admitted.isEmpty)
        #expect(origins.budget.counts.inUse == 0)
    }

    /// Takes minutes if the time for each grows by the number of those that wait.
    @Test func `a hundred thousand waiters are admitted in order, and may withdraw in any order`() {
        let a = Origins(perServer: 1).origin()
        let count = 100_000
        #expect(a.lease("first") == "open")
        let waiterIDs = (0..<count).map { number in
            a.lease("\(number)")
            return a.waiterID
        }
        // The last of them first.
        for number in (0..<count).reversed() where number % 3 != 0 { _ = a.withdraw(waiterIDs[number]) }
        #expect(!a.withdraw(waiterIDs[1]))
        for _ in 0..<count where !a.isUnused { a.end() }
        #expect(a.admitted == stride(from: 0, to: count, by: 3).map { "\($0)" })
    }

    @Test func `a server with room does not wait for a server without room`() {
        let origins = Origins(perServer: 1, inAll: 2)
        let (a, b) = (origins.origin(), origins.origin())
        #expect(a.lease("1") == "open")
        #expect(a.lease("2") == nil)
        #expect(b.lease("3") == "open")
        #expect(b.lease("4") == nil)
        // In all there are two: that of b goes to b, for a has no room.
        b.end()
        #expect(b.admitted == ["4"] && a.admitted.isEmpty)
        a.end()
        #expect(a.admitted == ["2"])
    }

    @Test func `US-39 the first waiter of the highest current rank is the top waiter`() {
        let budget = ConnectionBudget(ConnectionLimits())
        let key = ConnectionKey(host: "a", port: 80, tls: nil)
        var state = OriginState<Int, String>(limit: 0, idleLimit: 0)
        var numbers: [String: Int] = [:]
        for waiter in ["low", "high", "high too"] {
            let decision = state.lease(key, of: nil, for: waiter, within: budget, mayReuse: true)
            if case .wait(_, let waiterID, _) = decision { numbers[waiter] = waiterID }
        }
        var ranks: [String: Float] = ["low": 0, "high": 1, "high too": 1]
        let first = state.topWaiter { ranks[$0] ?? 0 }
        #expect(first?.waiterID == numbers["high"] && numbers.count == 3)
        let isWithdrawn = state.withdraw(numbers["high"] ?? 0)
        let second = state.topWaiter { ranks[$0] ?? 0 }
        #expect(isWithdrawn && second?.waiterID == numbers["high too"])
        ranks["low"] = 2
        let third = state.topWaiter { ranks[$0] ?? 0 }
        #expect(third?.waiterID == numbers["low"])
        for waiter in ["low", "high too"] { _ = state.withdraw(numbers[waiter] ?? 0) }
        let none = state.topWaiter { ranks[$0] ?? 0 }
        #expect(none == nil)
    }

    @Test func `US-39 of one group's servers the waiter of the highest rank comes first, then the longest`() {
        let origins = Origins(inAll: 1)
        let ranks: [String: Float] = ["high": 2, "high too": 2, "low": -1]
        let (a, b) = (origins.origin(ranked: ranks), origins.origin(ranked: ranks))
        let stranger = origins.origin()
        #expect(stranger.lease("first") == "open")
        for (server, waiter) in [
            (a, "low"), (b, "high"), (a, "high too"), (stranger, "stranger"), (b, "normal"),
        ] {
            #expect(server.lease(waiter) == nil)
        }
        stranger.end()
        #expect(b.admitted == ["high"])
        b.end()
        #expect(a.admitted == ["high too"])
        a.end()
        // Another group's waiter has waited for longer than the one of this group that is left but "low", whose turn it is.
        #expect(b.admitted == ["high", "normal"])
        b.end()
        #expect(a.admitted == ["high too", "low"])
        a.end()
        #expect(stranger.admitted == ["stranger"])
        stranger.end()
        #expect(origins.budget.counts.inUse == 0)
    }

    @Test func `where the process has no room, the waiters of all servers come in order`() {
        let origins = Origins(inAll: 2)
        let (a, b, c) = (origins.origin(), origins.origin(), origins.origin())
        #expect(a.lease("1") == "open")
        #expect(a.lease("2") == "open")
        #expect(b.lease("3") == nil)
        #expect(a.lease("4") == nil)
        #expect(c.lease("5") == nil)
        #expect(b.lease("6") == nil)
        a.end()
        #expect(b.admitted == ["3"] && a.admitted.isEmpty)
        a.end()
        #expect(a.admitted == ["4"])
        b.end()
        #expect(c.admitted == ["5"])
        c.end()
        #expect(b.admitted == ["3", "6"])
        a.end()
        b.end()
        #expect(origins.budget.counts.inUse == 0 && !origins.budget.hasQueue)
        #expect(a.isUnused && b.isUnused && c.isUnused)
    }

    @Test func `a waiter that withdraws is forgotten, and higher limits let more in`() {
        let origins = Origins(perServer: 1, inAll: 1)
        let (a, b) = (origins.origin(), origins.origin())
        #expect(a.lease("1") == "open")
        #expect(a.lease("2") == nil)
        let waiterID = a.waiterID
        #expect(b.lease("3") == nil)
        #expect(a.withdraw(waiterID))
        #expect(!a.withdraw(waiterID))
        var limits = ConnectionLimits()
        limits.connections = 2
        origins.budget.setLimits(limits)
        #expect(b.admitted == ["3"])
        #expect(b.lease("4") == nil)
        #expect(b.lease("5") == nil)
        limits.connections = 10
        origins.budget.setLimits(limits)
        #expect(b.setLimit(10) == [])
        #expect(b.admitted == ["3", "4", "5"])
    }

    @Test
    func
        `an idle connection is used again, unless a new one is wanted, and is the waiter's that is admitted`()
    {
        let origins = Origins(perServer: 2)
        let a = origins.origin()
        #expect(a.lease("1") == "open")
        #expect(a.end(keeping: 7) == [])
        #expect(origins.budget.counts.idle == 1)
        #expect(a.lease("2", mayReuse: false) == "open")
        #expect(a.lease("3") == "7")
        #expect(origins.budget.counts.idle == 0 && origins.budget.counts.inUse == 2)
        #expect(a.lease("4") == nil)
        // Its idle connection is not taken past the one that waits.
        #expect(a.end(keeping: 8) == [])
        #expect(a.admitted == ["4"] && origins.budget.counts.idle == 1)
        #expect(a.lease("5") == nil)
    }

    @Test func `a server keeps no more idle connections than its limit, and the oldest is removed`() {
        let origins = Origins(idle: 2)
        let a = origins.origin()
        for number in 0..<3 { #expect(a.lease("\(number)") == "open") }
        #expect(a.end(keeping: 0) == [])
        #expect(a.end(keeping: 1) == [])
        #expect(a.end(keeping: 2) == [0])
        #expect(origins.budget.counts.idle == 2)
        #expect(a.setLimit(10, idle: 0) == [1, 2])
        #expect(origins.budget.counts.idle == 0)
        #expect(a.lease("4") == "open")
        #expect(a.end(keeping: 4) == [4])
    }

    @Test func `the budget tells when too many connections are idle in all`() {
        let origins = Origins(idle: 4, idleInAll: 1)
        let (a, b) = (origins.origin(), origins.origin())
        a.lease("1")
        b.lease("2")
        a.end(keeping: 1)
        #expect(!origins.budget.isOverIdleLimit)
        b.end(keeping: 2)
        #expect(origins.budget.isOverIdleLimit)
        #expect(a.setLimit(4, idle: 0) == [1])
        #expect(!origins.budget.isOverIdleLimit)
    }

    @Test func `a lease that is dropped gives its place back`() throws {
        let pool = ConnectionPool()
        let key = ConnectionKey(host: "a", port: 80, tls: nil)
        let origin = pool.findOrMakeOrigin(of: key.server)
        try onLoopThread { loop in
            switch origin.lease(key, of: loop, at: nil, for: LeaseWait(priority: 0.5) {}, mayReuse: true) {
            case .granted(let lease): _ = consume lease
            case .wait: Issue.record("there is room")
            }
        }
        #expect(pool.budget.counts.inUse == 0 && origin.isUnused)
    }

    /// Is told of nothing.
    private final class NoOwner: ExchangeOwner, ChannelGate, Sendable {
        var maySend: Bool { true }
        var gate: any ChannelGate { self }
        func admit(_ event: () -> Void, onRefusal: () -> Void) {}
        func received(_ event: ExchangeEvent) {}
    }

    @Test func `an exchange that is dropped without its end gives its place back`() throws {
        let pool = ConnectionPool()
        let key = ConnectionKey(host: "a", port: 80, tls: nil)
        let origin = pool.findOrMakeOrigin(of: key.server)
        try onLoopThread { loop in
            switch origin.lease(key, of: loop, at: nil, for: LeaseWait(priority: 0.5) {}, mayReuse: true) {
            case .granted(let lease):
                let connection = HTTP1Connection(
                    SocketChannel(SocketChannel.Configuration(host: "a", port: 80)), key: key, of: origin)
                let exchange = HTTP1Exchange(
                    over: connection, by: lease, of: NoOwner(),
                    reporting: ExchangeReporting(steps: false, times: false))
                #expect(pool.budget.counts.inUse == 1)
                withExtendedLifetime(exchange) {}
            case .wait: Issue.record("there is room")
            }
        }
        #expect(pool.budget.counts.inUse == 0 && origin.isUnused)
    }

    @Test func `servers to which no connection is kept are forgotten, and a retired pool knows none`() throws
    {
        let pool = ConnectionPool()
        let kept = pool.findOrMakeOrigin(of: ConnectionKey(host: "kept", port: 80, tls: nil).server)
        try onLoopThread { loop in
            for number in 0..<2_000 {
                let key = ConnectionKey(host: "host\(number)", port: 80, tls: nil)
                let outcome = pool.findOrMakeOrigin(of: key.server).lease(
                    key, of: loop, at: nil, for: LeaseWait(priority: 0.5) {}, mayReuse: true)
                if case .granted(let lease) = consume outcome { lease.end() }
            }
        }
        #expect(pool.origins.count <= ConnectionPool.minimumPruningCount)
        #expect(pool.findOrMakeOrigin(of: kept.server) === kept)
        pool.retire()
        _ = pool.findOrMakeOrigin(of: kept.server)
        #expect(pool.origins.isEmpty)
    }

    /// Threads that take and give back while others wait: none is forgotten.
    @Test func `a waiter is never forgotten, whatever threads do`() throws {
        let pool = ConnectionPool()
        var limits = ConnectionLimits()
        limits.connections = 2
        limits.connectionsPerServer = 2
        pool.limits = limits
        let keys = (0..<3).map { ConnectionKey(host: "host\($0)", port: 80, tls: nil) }
        let threads = (0..<6).map { number in
            LoopThread { loop in
                let key = keys[number % 3]
                for _ in 0..<2_000 {
                    let admission = Latch()
                    let wait = LeaseWait(priority: 0.5) { admission.open() }
                    let origin = pool.findOrMakeOrigin(of: key.server)
                    switch origin.lease(key, of: loop, at: nil, for: wait, mayReuse: true) {
                    case .granted(let lease): lease.end()
                    case .wait:
                        #expect(throws: Never.self) { try admission.wait() }
                        origin.leaseAdmitted(key, of: loop, at: nil, mayReuse: true).end()
                    }
                }
            }
        }
        for thread in threads { try thread.value() }
        #expect(pool.budget.counts.inUse == 0 && !pool.budget.hasQueue)
        pool.closeAll()
        #expect(pool.origins.isEmpty)
    }
}

/// The same with loads.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct OriginTests {
    /// A server to which one connection is allowed, and which answers requests with their targets.
    ///
    /// - Parameter waits: Whether a request is answered once `go` is open.
    private static func waitingServer(
        _ waits: @escaping @Sendable (TestRequest) -> Bool
    ) throws -> (TestServer, go: Latch) {
        let go = Latch()
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if waits(request) { try go.wait() }
                try peer.respond(body: request.target)
            }
        }
        URLConnection.limits.exceptions["127.0.0.1:\(server.port)"] = 1
        return (server, go)
    }

    @Test func `UC-72 loads wait for a place in order, in their modes, and one that is cancelled leaves`()
        throws
    {
        let (server, go) = try Self.waitingServer { _ in true }
        let recorders = (0..<5).map { _ in Recorder() }
        let order = EventLog()
        try onLoopThread { loop in
            var connections: [URLConnection?] = []
            for (number, recorder) in recorders.enumerated() {
                connections.append(
                    URLConnection(
                        request: URLRequest(url: server.url("/\(number)")),
                        delegate: Noting(order, number, recorder)))
            }
            #expect(loop.run { server.requests.count == 1 })
            loop.runInVain()
            #expect(server.accepted == 1)
            connections[2]?.cancel()
            go.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(order.entries == ["0", "1", "3", "4"])
        #expect(server.accepted == 1)
        #expect(server.requests.map(\.target) == ["/0", "/1", "/3", "/4"])
    }

    @Test
    func
        `UC-72 a load that is cancelled once it was admitted, and before it has used that, lets the next one in`()
        throws
    {
        let (server, go) = try Self.waitingServer { $0.target == "/0" }
        let recorders = (0..<3).map { _ in Recorder() }
        try onLoopThread { loop in
            let connections = recorders.enumerated().map { number, recorder in
                // The second is in a mode that will not run when its turn comes.
                let mode = number == 1 ? RunLoop.Mode.other : .default
                let connection = URLConnection(
                    request: URLRequest(url: server.url("/\(number)")), delegate: recorder,
                    startImmediately: false)
                connection?.schedule(in: loop, forMode: mode)
                connection?.start()
                // To the end of the queue; the first is sent.
                for _ in 0..<20 { _ = loop.run(in: mode, for: 0, returnAfterSourceHandled: false) }
                return connection
            }
            #expect(loop.run { server.requests.count == 1 })
            go.open()
            #expect(loop.run { recorders[0].isDone })
            loop.runInVain(for: 0.05)
            #expect(!recorders[2].isDone)
            connections[1]?.cancel()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.map(\.text) == ["/0", "", "/2"])
    }

    @Test func `a connection whose load waits for a place says so`() throws {
        let (server, go) = try Self.waitingServer { _ in true }
        let recorders = [Recorder(), Recorder()]
        let started = Box<[URLConnection]>([])
        let thread = LoopThread { loop in
            for (number, recorder) in recorders.enumerated() {
                let request = URLRequest(url: server.url("/\(number)"))
                guard let connection = URLConnection(request: request, delegate: recorder) else { continue }
                started.mutate { $0.append(connection) }
            }
            loop.runOut()
        }
        let sentence = try waitFor("the second to wait") {
            started.value.map(\.whyNotDelivering).first { $0.reason == .waits }?.description
        }
        #expect(sentence == "it waits for a connection: as many as are allowed are in use")
        go.open()
        try thread.value()
        #expect(recorders.map(\.text) == ["/0", "/1"])
        #expect(started.value.allSatisfy { $0.whyNotDelivering.reason == .invalid })
    }

    /// Notes the end of a load.
    private final class Noting: NSObject, URLConnectionDataDelegate, Sendable {
        private let log: EventLog
        private let number: Int
        private let recorder: Recorder

        init(_ log: EventLog, _ number: Int, _ recorder: Recorder) {
            (self.log, self.number, self.recorder) = (log, number, recorder)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            log.note("\(number)")
            recorder.connectionDidFinishLoading(connection)
        }
    }

    /// Notes that the budget asks it, and admits nothing.
    private final class Candidate: BudgetCandidate {
        private let name: String
        private let asked: EventLog

        init(_ name: String, _ asked: EventLog) { (self.name, self.asked) = (name, asked) }

        func admitFirst() -> Int? {
            asked.note(name)
            return nil
        }
        var group: ObjectIdentifier { ObjectIdentifier(self) }
        var topWaiter: RankedWaiter? { nil }
    }

    /// Each lease of a server that ends enters the server again while the process has no room.
    @Test func `the budget's queue has each server once, in the place of its first waiter`() {
        var limits = ConnectionLimits()
        limits.connections = 1
        let budget = ConnectionBudget(limits)
        #expect(budget.take())
        let asked = EventLog()
        let (first, second) = (Candidate("first", asked), Candidate("second", asked))
        budget.enqueue(second, waiterID: 2)
        for waiterID in [3, 1, 4] { budget.enqueue(first, waiterID: waiterID) }
        #expect(!budget.take() && budget.hasQueue)
        _ = budget.giveBack(toIdle: false)
        budget.admit()
        #expect(asked.entries == ["first", "second"])
        #expect(!budget.hasQueue)
    }
}
