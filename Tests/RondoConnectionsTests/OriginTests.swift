import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Who may have a connection now, and who waits.
@Suite(.leavesNoConnections) struct SlotStateTests {
    private typealias State = SlotState<String>
    private let a = State.Server(host: "a", port: 80), b = State.Server(host: "b", port: 80)

    /// A state in a box: expectations take no mutating calls.
    private final class Slots {
        private var state: State

        init(perServer: Int, inAll: Int) {
            var limits = URLConnection.Limits()
            limits.connectionsPerServer = perServer
            limits.connections = inAll
            state = State(limits: limits)
        }

        var isUnused: Bool { state.isUnused }
        var serverCount: Int { state.serverCount }
        func enter(_ server: State.Server, _ waiter: String) -> Int? { state.enter(server, waiter) }
        func leave(_ server: State.Server) -> [String] { state.leave(server).map(\.waiter) }
        func withdraw(_ ticket: Int) -> Bool { state.withdraw(ticket) }
        func lift() -> [String] { state.setLimits(URLConnection.Limits()).map(\.waiter) }
    }

    @Test func `who finds no room waits, in order, and nobody overtakes`() {
        let slots = Slots(perServer: 1, inAll: 10)
        #expect(slots.enter(a, "1") == nil)
        #expect(slots.enter(a, "2") != nil)
        #expect(slots.enter(a, "3") != nil)
        #expect(slots.enter(b, "4") == nil)
        #expect(slots.leave(a) == ["2"])
        #expect(slots.leave(a) == ["3"])
        #expect(slots.leave(a).isEmpty)
        #expect(slots.leave(b).isEmpty)
        #expect(slots.isUnused)
    }

    @Test func `a server with room does not wait for one without`() {
        let slots = Slots(perServer: 1, inAll: 2)
        #expect(slots.enter(a, "1") == nil)
        #expect(slots.enter(a, "2") != nil)
        #expect(slots.enter(b, "3") == nil)
        #expect(slots.enter(b, "4") != nil)
        // In all there are two: the place of b goes to b, for a has none.
        #expect(slots.leave(b) == ["4"])
        #expect(slots.leave(a) == ["2"])
    }

    @Test func `who withdraws is forgotten, and higher limits let more in`() throws {
        let slots = Slots(perServer: 1, inAll: 1)
        #expect(slots.enter(a, "1") == nil)
        let ticket = try #require(slots.enter(a, "2"))
        #expect(slots.enter(b, "3") != nil)
        #expect(slots.withdraw(ticket))
        #expect(!slots.withdraw(ticket))
        #expect(slots.lift() == ["3"])
    }

    @Test func `servers are told apart, however many, and forgotten when they are not used`() throws {
        let slots = Slots(perServer: 1, inAll: 100)
        let servers = (0..<90).map { State.Server(host: "host\($0)", port: 80) }
        for server in servers { #expect(slots.enter(server, "") == nil) }
        let tickets = try servers.map { try #require(slots.enter($0, "waiter of \($0.host)")) }
        #expect(slots.serverCount == 90)
        for number in [1, 89, 0] { #expect(slots.leave(servers[number]) == ["waiter of host\(number)"]) }
        for number in servers.indices where ![1, 89, 0].contains(number) {
            #expect(slots.withdraw(tickets[number]))
        }
        for server in servers { #expect(slots.leave(server).isEmpty) }
        #expect(slots.isUnused)
        // Who waits in vain leaves no more behind.
        for server in servers.prefix(50) { #expect(slots.enter(server, "") == nil) }
        for server in servers.suffix(40) { #expect(slots.enter(server, "") == nil) }
        for server in servers {
            #expect(slots.withdraw(try #require(slots.enter(server, ""))))
            _ = slots.leave(server)
        }
        #expect(slots.isUnused && slots.serverCount <= State.serversKept)
        for server in servers { #expect(slots.enter(server, "") == nil) }
    }
}

/// The same with loads.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ConnectionSlotsTests {
    @Test func `UC-72 loads wait for a place in order, in their modes, and one that is cancelled leaves`()
        throws
    {
        let go = Latch()
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try go.wait()
                try peer.respond(body: request.target)
            }
        }
        URLConnection.limits.exceptions["127.0.0.1:\(server.port)"] = 1
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

    @Test func `UC-72 a load that is cancelled after its turn has come, and before it took it, gives it on`()
        throws
    {
        let go = Latch()
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/0" { try go.wait() }
                try peer.respond(body: request.target)
            }
        }
        URLConnection.limits.exceptions["127.0.0.1:\(server.port)"] = 1
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
}
