import RondoProbeSupport
import Testing

@testable import RondoCore

@Suite struct KeyedQueueTests {
    private func made(of keys: [Int]) -> KeyedQueue<Int, String> {
        var queue = KeyedQueue<Int, String>()
        for key in keys { queue.insert("\(key)", key: key) }
        return queue
    }

    private func rest(of queue: KeyedQueue<Int, String>) -> [String] {
        var queue = queue
        var rest: [String] = []
        while let element = queue.popFirst() { rest.append(element) }
        #expect(queue.isEmpty && queue.count == 0 && queue.first == nil && queue.firstKey == nil)
        return rest
    }

    @Test func `elements leave in the order of their keys, whenever they come`() {
        var (queue, taken) = (made(of: []), [String]())
        for key in 0..<1_000 {
            queue.insert("\(key)", key: key)
            if key % 3 == 2, let first = queue.popFirst() { taken.append(first) }
        }
        #expect(queue.first == "333" && queue.firstKey == 333 && queue.count == 667)
        #expect(taken + rest(of: queue) == (0..<1_000).map { "\($0)" })
    }

    @Test func `a keyed queue has smaller keys before larger ones`() {
        var queue = made(of: [10, 30, 20, 5])
        #expect(queue.elements == ["5", "10", "20", "30"])
        #expect(queue.popFirst() == "5")
        // In the place of the one that has left.
        queue.insert("7", key: 7)
        #expect(queue.placeCount == 4)
        queue.insert("6", key: 6)
        #expect(rest(of: queue) == ["6", "7", "10", "20", "30"])
    }

    @Test func `a keyed queue removes an element from the middle once, and takes it again`() {
        var queue = made(of: [1, 2, 3, 4])
        #expect(queue.remove(3) == "3")
        for unknown in [0, 3, 5] {
            #expect(queue.remove(unknown) == nil && !queue.contains(unknown))
        }
        #expect(queue.contains(2) && queue.count == 3)
        queue.insert("again", key: 3)
        #expect(queue.remove(1) == "1")
        #expect(queue.firstKey == 2)
        #expect(queue.elements == ["2", "again", "4"])
        var entries: [Int: String] = [:]
        queue.forEach { key, element in entries[key] = element }
        #expect(entries == [2: "2", 3: "again", 4: "4"])
        #expect(queue.remove(4) == "4")
        #expect(rest(of: queue) == ["2", "again"])
    }

    @Test func `an element is changed in its place`() {
        var queue = made(of: [1, 2, 3])
        let old = queue.change(2) { element in
            defer { element = "two" }
            return element
        }
        #expect(old == "2")
        let none = queue.change(4) { _ in true }
        #expect(none == nil)
        #expect(rest(of: queue) == ["1", "two", "3"])
    }

    @Test func `places of elements that have left are dropped, and all in all each is moved a few times`() {
        var queue = made(of: [0])
        // The first stays, while others come and go behind it.
        for key in 1...10_000 {
            queue.insert("\(key)", key: key)
            if key > 1 { _ = queue.remove(key - 1) }
            #expect(queue.placeCount <= 2 * queue.count + 64)
        }
        #expect(queue.elements == ["0", "10000"])
        for key in 10_001...20_000 { queue.insert("\(key)", key: key) }
        var drops = 0
        for key in (10_001..<20_000).reversed() {
            let places = queue.placeCount
            _ = queue.remove(key)
            if queue.placeCount < places { drops += 1 }
        }
        // Each time half of the places are dropped.
        #expect(drops < 14)
        #expect(rest(of: queue) == ["0", "10000", "20000"])
    }

    /// Against an array that does the same.
    @Test(arguments: 0..<4) func `a keyed queue keeps its order through random changes`(seed: Int) {
        var random = Random(seed: UInt64(seed))
        var queue = made(of: [])
        var model: [Int] = []
        for _ in 0..<5_000 {
            let key = Int.random(in: 0..<300, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                if model.contains(key) { continue }
                queue.insert("\(key)", key: key)
                model.append(key)
                model.sort()
            case 2:
                let removed = queue.remove(key)
                #expect(removed == (model.contains(key) ? "\(key)" : nil))
                model.removeAll { $0 == key }
            default:
                let first = queue.popFirst()
                #expect(first == model.first.map { "\($0)" })
                model = Array(model.dropFirst())
            }
            #expect(queue.count == model.count && queue.firstKey == model.first)
            #expect(queue.nextKey(after: key) == model.first(where: { $0 > key }))
        }
        #expect(queue.elements == model.map { "\($0)" })
    }
}
