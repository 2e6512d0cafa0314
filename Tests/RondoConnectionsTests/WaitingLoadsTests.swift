import RondoProbeSupport
import Testing

@testable import RondoConnections

/// The loads that wait for a connection, as a value.
@Suite struct WaitingLoadsTests {
    private func loads(_ waiters: [String]) -> WaitingLoads<String> {
        var loads = WaitingLoads<String>()
        for (index, waiter) in waiters.enumerated() { loads.append(waiter, waiterID: 10 * index) }
        return loads
    }

    private func rest(of waiting: WaitingLoads<String>) -> [String] {
        var waiting = waiting
        var rest: [String] = []
        while let waiter = waiting.popFirst() { rest.append(waiter) }
        return rest
    }

    @Test func `waiters leave in the order in which they came`() {
        var waiting = loads(["a", "b", "c"])
        #expect(waiting.firstID == 0)
        #expect(waiting.popFirst() == "a")
        #expect(waiting.firstID == 10)
        waiting.append("d", waiterID: 30)
        #expect(rest(of: waiting) == ["b", "c", "d"])
        for _ in 0..<3 { _ = waiting.popFirst() }
        #expect(waiting.isEmpty && waiting.firstID == nil)
        waiting.append("e", waiterID: 40)
        #expect(waiting.popFirst() == "e")
    }

    @Test func `one that withdraws leaves the others in their order, and is found once`() {
        var waiting = loads(["a", "b", "c", "d"])
        #expect(waiting.remove(20) == "c")
        for unknown in [20, 15, 40] { #expect(waiting.remove(unknown) == nil) }
        #expect(waiting.remove(0) == "a")
        #expect(waiting.remove(0) == nil)
        #expect(waiting.firstID == 10)
        #expect(rest(of: waiting) == ["b", "d"])
    }

    @Test func `US-39 the first of the highest rank is the top, by the ranks of the moment`() {
        var waiting = loads(["low", "high", "high too"])
        var ranks: [String: Float] = ["low": 0, "high": 1, "high too": 1]
        var top: Int? { waiting.top { ranks[$0] ?? 0 }?.waiterID }
        #expect(top == 10)
        #expect(waiting.remove(10) == "high")
        #expect(top == 20)
        ranks["low"] = 2
        #expect(top == 0)
        for _ in 0..<2 { _ = waiting.popFirst() }
        #expect(top == nil)
    }

    /// Against an array that does the same.
    @Test(arguments: 0..<8) func `whatever comes and leaves, the order stays`(seed: Int) {
        var random = Random(seed: UInt64(seed))
        var waiting = WaitingLoads<String>()
        var model: [Int] = []
        for waiterID in 0..<3_000 {
            waiting.append("\(waiterID)", waiterID: waiterID)
            model.append(waiterID)
            while !model.isEmpty, Int.random(in: 0..<100, using: &random) < seed * 7 + 10 {
                let isFirst = Bool.random(using: &random)
                let gone = model.remove(at: isFirst ? 0 : Int.random(in: 0..<model.count, using: &random))
                let waiter = isFirst ? waiting.popFirst() : waiting.remove(gone)
                #expect(waiter == "\(gone)")
                #expect(waiting.firstID == model.first)
            }
        }
        for waiterID in model { #expect(waiting.popFirst() == "\(waiterID)") }
        #expect(waiting.isEmpty)
    }
}
