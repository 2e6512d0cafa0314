import RondoCore
import RondoTestSupport
import Testing

@testable import RondoConnections

/// The limits of the process with very many servers.
@Suite struct ConnectionBudgetTests {
    /// A pool of idle connections that are nothing but instants.
    private final class IdlePool: BudgetPool {
        private let idle = Box<[ConnectionKey.Server: [LoopInstant]]>([:])
        private let budget: ConnectionBudget
        let searches = Box(0)
        let closed = Box<[Int]>([])

        init(_ budget: ConnectionBudget) {
            self.budget = budget
            budget.add(self)
        }

        private static func server(_ number: Int) -> ConnectionKey.Server {
            ConnectionKey.Server(host: "\(number).example", port: 80)
        }

        func keep(_ number: Int, at time: Int) {
            let since = LoopInstant(nanoseconds: Int64(time))
            idle.mutate { $0[Self.server(number), default: []].append(since) }
            _ = budget.take()
            _ = budget.giveBack(toIdle: true)
        }

        func use(_ number: Int) {
            idle.mutate { _ = $0[Self.server(number)]?.popLast() }
            budget.removeIdle(1)
        }

        func closeAll() {
            let all = idle.value
            idle.mutate { $0 = [:] }
            budget.removeIdle(all.values.reduce(0) { $0 + $1.count })
        }

        var idleServers: [(server: ConnectionKey.Server, since: LoopInstant)] {
            searches.mutate { $0 += 1 }
            return idle.value.compactMap { server, times in times.first.map { (server: server, since: $0) } }
        }

        func closeOldest(to server: ConnectionKey.Server, idleSince since: LoopInstant) -> LoopInstant? {
            if let oldest = idle.value[server]?.first, oldest <= since {
                idle.mutate { _ = $0[server]?.removeFirst() }
                closed.mutate { $0.append(Int(oldest.nanoseconds)) }
                budget.removeIdle(1)
            }
            return idle.value[server]?.first
        }
    }

    private static func budget(idle: Int) -> ConnectionBudget {
        var limits = ConnectionLimits()
        limits.idleConnections = idle
        return ConnectionBudget(limits)
    }

    @Test
    func `idle connections beyond the limit are closed in order, mostly without a search for the oldest`() {
        let budget = Self.budget(idle: 100)
        let pool = IdlePool(budget)
        for number in 0..<1000 {
            pool.keep(number, at: number)
            budget.closeSurplus()
        }
        #expect(pool.closed.value == Array(0..<900))
        #expect(pool.searches.value < 20)
    }

    @Test func `a connection that was used again is not closed in its former turn`() {
        let budget = Self.budget(idle: 2)
        let pool = IdlePool(budget)
        for number in 1...3 { pool.keep(number, at: number) }
        budget.closeSurplus()
        #expect(pool.closed.value == [1])
        pool.use(2)
        pool.keep(2, at: 10)
        pool.keep(4, at: 11)
        budget.closeSurplus()
        #expect(pool.closed.value == [1, 3])
        #expect(budget.counts.idle == 2)
    }

    /// Notes that the budget asks it, and admits nothing.
    private final class Candidate: BudgetCandidate {
        private let number: Int
        private let asked: Box<[Int]>

        init(_ number: Int, _ asked: Box<[Int]>) { (self.number, self.asked) = (number, asked) }

        func admitFirst() -> Int? {
            asked.mutate { $0.append(number) }
            return nil
        }
        var group: ObjectIdentifier { ObjectIdentifier(self) }
        var topWaiter: RankedWaiter? { nil }
    }

    /// Takes minutes if the time for each grows by the number of those that wait.
    @Test func `a hundred thousand servers wait for the process's limit, and come in order`() {
        var limits = ConnectionLimits()
        limits.connections = 1
        let budget = ConnectionBudget(limits)
        #expect(budget.take())
        let asked = Box<[Int]>([])
        let count = 100_000
        // The last of them first.
        for number in (0..<count).reversed() {
            budget.enqueue(Candidate(number, asked), waiterID: number)
        }
        _ = budget.giveBack(toIdle: false)
        budget.admit()
        #expect(asked.value.elementsEqual(0..<count))
        #expect(!budget.hasQueue)
    }

    /// Waits for the process's limit, and counts the questions about its waiters.
    private final class RankedCandidate: BudgetCandidate {
        private let waiter: RankedWaiter
        let group: ObjectIdentifier
        let questions = Box(0)

        init(_ waiter: RankedWaiter, in group: AnyObject) {
            (self.waiter, self.group) = (waiter, ObjectIdentifier(group))
        }

        func admitFirst() -> Int? { nil }
        var topWaiter: RankedWaiter? {
            questions.mutate { $0 += 1 }
            return waiter
        }
    }

    @Test func `US-39 a server that goes by its rank again and again is in the queue once`() {
        let pool = IdlePool(ConnectionBudget())
        let first = RankedCandidate(RankedWaiter(rank: 0, waiterID: 1), in: pool)
        let ranked = RankedCandidate(RankedWaiter(rank: 1, waiterID: 3), in: pool)
        var queue = BudgetQueue()
        queue.insert(first, waiterID: 1)
        queue.insert(ranked, waiterID: 2)
        var others = 0
        for _ in 0..<10_000 {
            let next = queue.popFirst()
            if next !== ranked { others += 1 }
            queue.insert(ranked, waiterID: 2)
        }
        #expect(others == 0 && queue.count == 2)
        #expect(ranked.questions.value <= 10_000)
    }

    @Test func `US-39 a server that went by its rank is released`() {
        let pool = IdlePool(ConnectionBudget())
        let first = RankedCandidate(RankedWaiter(rank: 0, waiterID: 1), in: pool)
        var queue = BudgetQueue()
        queue.insert(first, waiterID: 1)
        weak var released: RankedCandidate?
        do {
            let ranked = RankedCandidate(RankedWaiter(rank: 1, waiterID: 2), in: pool)
            released = ranked
            queue.insert(ranked, waiterID: 2)
            let next = queue.popFirst()
            #expect(next === ranked)
        }
        #expect(released == nil && queue.count == 1)
    }

    @Test func `US-39 priorities are compared only while a load with another one than the usual waits`() {
        let ranked = RankedWaits()
        var wait: LeaseWait? = LeaseWait(priority: 0.5, in: ranked) {}
        #expect(ranked.isEmpty)
        for (priority, isEmpty) in [(0.8, false), (0.2, false), (0.5, true), (1, false)] as [(Float, Bool)] {
            wait?.priority = priority
            #expect(ranked.isEmpty == isEmpty)
        }
        wait = LeaseWait(priority: 0, in: ranked) {}
        withExtendedLifetime(wait) { #expect(!ranked.isEmpty) }
        wait = nil
        #expect(ranked.isEmpty)
    }
}
