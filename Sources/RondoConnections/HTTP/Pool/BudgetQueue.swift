/// The origins whose waiters lack nothing but room in the budget, each once, in the order in which they began
/// to wait.
///
/// It is a heap, so that the time for each grows by the logarithm of their number: a crawler may wait for
/// thousands of servers. An origin that gets an earlier place, or that goes by its rank, leaves its entry
/// behind, which is skipped later.
struct BudgetQueue {
    /// An origin's entry in the heap. One that was left behind has another number than its origin. It does
    /// not retain the origin, and through it the pool.
    private struct Entry {
        let waiterID: Int
        let number: Int
        let identity: ObjectIdentifier
    }

    private struct Place {
        let waiterID: Int
        let number: Int
        let origin: any BudgetCandidate
    }

    private var heap: [Entry] = []
    /// The origins in the queue.
    private var current: [ObjectIdentifier: Place] = [:]
    /// The number of the last entry.
    private var lastNumber = 0

    var count: Int { current.count }

    /// Adds an origin, or gives it an earlier place: its place is that of its first waiter.
    mutating func insert(_ origin: any BudgetCandidate, waiterID: Int) {
        let identity = ObjectIdentifier(origin)
        if let known = current[identity], known.waiterID <= waiterID { return }
        lastNumber += 1
        current[identity] = Place(waiterID: waiterID, number: lastNumber, origin: origin)
        dropEntriesLeftBehind()
        push(Entry(waiterID: waiterID, number: lastNumber, identity: identity))
    }

    /// Removes the next origin: the one with the highest rank in the group of the first one.
    mutating func popFirst() -> (any BudgetCandidate)? {
        while let first = heap.first, !isCurrent(first) { removeTop() }
        guard let identity = heap.first?.identity, let first = current[identity]?.origin else { return nil }
        let next = highestRanked(inGroupOf: first)
        current[ObjectIdentifier(next)] = nil
        if next === first { removeTop() }
        return next
    }

    private func highestRanked(inGroupOf first: any BudgetCandidate) -> any BudgetCandidate {
        // Nil while all waiters of the group have the same rank, which is usual.
        guard var top = first.topWaiter else { return first }
        let group = first.group
        var next = first
        for place in current.values where place.origin !== first && place.origin.group == group {
            guard let other = place.origin.topWaiter, other < top else { continue }
            (next, top) = (place.origin, other)
        }
        return next
    }

    private func isCurrent(_ entry: Entry) -> Bool { current[entry.identity]?.number == entry.number }

    private mutating func dropEntriesLeftBehind() {
        guard heap.count > 2 * count + 64 else { return }
        let kept = heap.filter { isCurrent($0) }
        heap = []
        for entry in kept { push(entry) }
    }

    // MARK: The heap

    private mutating func push(_ entry: Entry) {
        var index = heap.count
        heap.append(entry)
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index].waiterID < heap[parent].waiterID else { return }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func removeTop() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
                if heap[child].waiterID < heap[smallest].waiterID { smallest = child }
            }
            guard smallest != index else { return }
            heap.swapAt(index, smallest)
            index = smallest
        }
    }
}
