import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Seats with a courier: who is told of what, and until when.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct StreamCourierTests {
    private final class Client: SeatedCourierClient {
        let name: String
        let log: EventLog
        let onMoment: @Sendable () -> Void

        init(_ name: String, _ log: EventLog, onMoment: @escaping @Sendable () -> Void = {}) {
            self.name = name
            self.log = log
            self.onMoment = onMoment
        }

        func turnHasCome(by courier: StreamCourier) -> Bool {
            log.note("turn of \(name)")
            return true
        }

        func courierIsLost() { log.note("\(name) is lost") }

        func momentHasPassed() {
            log.note("moment of \(name)")
            onMoment()
        }
    }

    @Test func `a moment is told once, to those who have asked`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b", "c"].map { Client($0, log, onMoment: { loop.stop() }) }
            let seats = clients.map { StreamCourier.join(loop, .default, label: nil, as: $0) }
            seats[0].tellWhenAMomentHasPassed()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            seats[1].tellWhenAMomentHasPassed()
            // Whoever has left is told no more.
            seats[2].tellWhenAMomentHasPassed()
            seats[2].leave()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            seats[0].leave()
            seats[1].leave()
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
        }
        #expect(log.entries == ["moment of a", "moment of b"])
    }

    @Test func `a turn that is withdrawn does not come, and those of others do`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b", "c"].map { Client($0, log) }
            let seats = clients.map { StreamCourier.join(loop, .default, label: nil, as: $0) }
            for (client, seat) in zip(clients, seats) { seat.courier.post(client) }
            seats[0].courier.withdraw(clients[1])
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            for (client, seat) in zip(clients, seats) { seat.courier.post(client) }
            for client in clients { seats[0].courier.withdraw(client) }
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: true) == .timedOut)
            for seat in seats { seat.leave() }
        }
        #expect(log.entries == ["turn of a", "turn of c"])
    }

    @Test func `who has a seat hears that the thread has ended, whatever its courier is called`() throws {
        let log = EventLog()
        let seats = try onLoopThread { loop in
            [nil, "named"].map { label in
                StreamCourier.join(
                    loop, .default, label: label, as: Client(label ?? "shared", log))
            }
        }
        #expect(Set(log.entries) == ["shared is lost", "named is lost"])
        #expect(seats.allSatisfy { $0.courier.hasLostItsThread })
        for seat in seats { seat.leave() }
    }
}
