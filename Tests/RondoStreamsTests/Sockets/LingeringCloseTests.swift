import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests which connections wait for their peer's end.
@Suite(.timeLimit(.minutes(5))) struct LingeringCloseTests {
    private final class Named: Sendable {
        let name: String

        init(_ name: String) { self.name = name }
    }

    private let a = Named("a")
    private let b = Named("b")
    private let c = Named("c")

    /// As many connections as may wait.
    ///
    /// - Parameter sent: The names of those that have sent everything.
    private func full(sent: Set<String>) -> LingeringConnections<Named> {
        var connections = LingeringConnections<Named>(limit: 3)
        for one in [a, b, c] {
            let removed = connections.insert(one, hasSentAll: sent.contains(one.name))
            #expect(removed == nil)
        }
        return connections
    }

    @Test(
        arguments: [
            (["a", "b", "c"], "a"), (["b", "c"], "b"), (["c"], "c"), ([], "a"),
        ] as [(Set<String>, String)])
    func `ST-5 beyond the limit the close that has waited longest is ended, first of those that sent all`(
        sent: Set<String>, ended: String
    ) {
        var connections = full(sent: sent)
        let removed = connections.insert(Named("d"), hasSentAll: false)
        #expect(removed?.name == ended)
        #expect(Set(connections.all.map(\.name)) == Set(["a", "b", "c", "d"]).subtracting([ended]))
    }

    @Test func `ST-5 a close that has sent its last bytes meanwhile is no longer spared`() {
        var connections = full(sent: ["c"])
        connections.noteSentAll(b)
        let first = connections.insert(Named("d"), hasSentAll: false)
        let second = connections.insert(Named("e"), hasSentAll: false)
        #expect(first === b && second === c)
        #expect(connections.count == 3)
    }

    @Test func `ST-5 a close that is over makes room`() {
        var connections = full(sent: ["a", "b", "c"])
        connections.remove(b)
        connections.noteSentAll(b)
        let removed = connections.insert(Named("d"), hasSentAll: true)
        #expect(removed == nil)
        #expect(Set(connections.all.map(\.name)) == ["a", "c", "d"])
    }

    /// A client that is to be closed, and its peer, over TLS.
    private struct Connection {
        let socket: Socket
        let client: TLSEngine
        let server: BlockingTLSClient

        init() throws {
            let (ours, theirs) = try PlainSocket.pair()
            socket = try Socket(adopting: ours)
            client = try TLSEngine(
                context: .shared(for: .test), descriptor: socket.descriptor, hostName: "localhost")
            server = try BlockingTLSClient(accepted: theirs, settings: TLSServerTests.settings())
            var isDone = (client: false, server: false)
            while !isDone.client || !isDone.server {
                if !isDone.client { isDone.client = try client.handshake() == .done }
                if !isDone.server { isDone.server = try server.engine.handshake() == .done }
            }
        }
    }

    /// In a process of its own: the connections of other tests wait, too.
    @Test func `ST-5 a close beyond the limit waits as well, and no more wait than may`() async {
        await #expect(processExitsWith: .success) {
            let connections = try (0...LingeringClose.connectionLimit).map { _ in try Connection() }
            for one in connections {
                precondition(LingeringClose.begin(one.socket, one.client), "a close waits for its peer")
                precondition(LingeringClose.count <= LingeringClose.connectionLimit, "no more than may")
            }
            withExtendedLifetime(connections) {}
        }
    }

    /// In a process of its own: it needs all places.
    @Test func `ST-5 a close that has bytes left to send outlasts those that have waited for less time`()
        async
    {
        await #expect(processExitsWith: .success) {
            let connections = try (0...LingeringClose.connectionLimit).map { _ in try Connection() }
            let (sending, silent) = (connections[0], connections[1...])
            let piece = [UInt8](repeating: 7, count: 4_096)
            var sent = 0
            while case .bytes(let count) = try piece.withUnsafeBytes({ try sending.client.write($0) }) {
                sent += count
            }
            // The time for which a close waits has no part in this.
            for one in connections {
                precondition(LingeringClose.begin(one.socket, one.client, seconds: 600), "a close waits")
            }
            precondition(sending.socket.descriptor >= 0, "the one that has bytes left is spared")
            let open = silent.filter { $0.socket.descriptor >= 0 }
            precondition(open.count == silent.count - 1, "one that has sent everything is ended")
            let (end, received) = try sending.server.readToEnd()
            guard case .end = end else { preconditionFailure("there is no close_notify: \(end)") }
            precondition(received.count == sent, "\(received.count) of \(sent) bytes have arrived")
            withExtendedLifetime(connections) {}
        }
    }
}
