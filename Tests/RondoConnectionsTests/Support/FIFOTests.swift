import Testing

@testable import RondoConnections

@Suite struct FIFOTests {
    @Test func `elements leave in the order in which they came, whenever they come`() {
        var (queue, taken) = (FIFO<Int>(), [Int]())
        for number in 0..<1_000 {
            queue.append(number)
            #expect(queue.last == number)
            if number % 3 == 2, let first = queue.popFirst() { taken.append(first) }
        }
        while let first = queue.popFirst() { taken.append(first) }
        #expect(taken == Array(0..<1_000))
        #expect(queue.isEmpty && queue.last == nil)
    }

    @Test func `a FIFO replaces its last element`() {
        var queue = FIFO<Int>()
        for number in 1...3 { queue.append(number) }
        #expect(queue.popFirst() == 1)
        queue.replaceLast(by: 4)
        #expect(queue.last == 4)
        #expect(queue.popFirst() == 2)
        #expect(queue.popFirst() == 4)
        #expect(queue.isEmpty && queue.last == nil)
    }
}
