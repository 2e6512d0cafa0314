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

    // MARK: - What is spent

    /// `@unchecked Sendable`: one thread uses it.
    private final class Spent: SpentObject, @unchecked Sendable {
        let name: String
        let log: EventLog
        var nextSpent: (any SpentObject)?

        init(_ name: String, _ log: EventLog) {
            self.name = name
            self.log = log
        }

        deinit { log.note("\(name) goes") }
    }

    /// `@unchecked Sendable`: one thread uses it.
    private final class Silent: SpentObject, @unchecked Sendable {
        var nextSpent: (any SpentObject)?
    }

    @Test func `what is spent goes after the turns that were asked for, and at once if none was`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let client = Client("a", log)
            let seat = StreamCourier.join(loop, .default, label: nil, as: client)
            seat.courier.releaseAfterTurns(Spent("unwaited", log))
            log.note("posted")
            seat.courier.post(client)
            seat.courier.releaseAfterTurns(Spent("first", log))
            seat.courier.releaseAfterTurns(Spent("second", log))
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            seat.leave()
        }
        #expect(log.entries.prefix(3) == ["unwaited goes", "posted", "turn of a"])
        #expect(log.entries.dropFirst(3).sorted() == ["first goes", "second goes"])
    }

    @Test func `however much is spent, the stack is deep enough`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let client = Client("a", log)
            let seat = StreamCourier.join(loop, .default, label: nil, as: client)
            seat.courier.post(client)
            for _ in 0..<1_000_000 { seat.courier.releaseAfterTurns(Silent()) }
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            seat.leave()
        }
        #expect(log.entries == ["turn of a"])
    }

    @Test func `where the run ends after one turn, what is spent does not wait for the others`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b"].map { Client($0, log) }
            let seats = clients.map { StreamCourier.join(loop, .default, label: nil, as: $0) }
            for (client, seat) in zip(clients, seats) { seat.courier.post(client) }
            seats[0].courier.releaseAfterTurns(Spent("it", log))
            for _ in clients {
                #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: true) == .handledSource)
            }
            for seat in seats { seat.leave() }
        }
        #expect(log.entries == ["turn of a", "it goes", "turn of b"])
    }

    @Test func `what is spent does not stay for turns that were withdrawn`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let client = Client("a", log)
            let seat = StreamCourier.join(loop, .default, label: nil, as: client)
            seat.courier.post(client)
            seat.courier.releaseAfterTurns(Spent("first", log))
            seat.courier.withdraw(client)
            log.note("withdrawn")
            seat.courier.releaseAfterTurns(nil)
            log.note("looked")
            seat.courier.post(client)
            seat.courier.releaseAfterTurns(Spent("last", log))
            seat.courier.withdraw(client)
            seat.leave()
        }
        #expect(log.entries == ["withdrawn", "first goes", "looked", "last goes"])
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
