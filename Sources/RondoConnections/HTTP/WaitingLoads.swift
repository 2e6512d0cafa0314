/// The loads that wait for a connection to one server, in the order in which they came. That is the order of their
/// IDs, by which one that withdraws is found.
///
/// The first leaves in constant time, any other in a time that grows by the logarithm of their number: a program may
/// start thousands of loads at once.
struct WaitingLoads<Waiter> {
    /// The waiters, from `head` on; nil in the place of one that has left. The first of them is never nil.
    private var places: [(waiterID: Int, waiter: Waiter?)] = []
    private var head = 0
    private var count = 0

    var isEmpty: Bool { count == 0 }

    var firstID: Int? { isEmpty ? nil : places[head].waiterID }

    /// - Parameter waiterID: Larger than all before.
    mutating func append(_ waiter: Waiter, waiterID: Int) {
        places.append((waiterID, waiter))
        count += 1
    }

    mutating func popFirst() -> Waiter? {
        isEmpty ? nil : take(at: head)
    }

    /// - Returns: Nil if there is no such waiter any more.
    mutating func remove(_ waiterID: Int) -> Waiter? {
        guard let index = index(of: waiterID) else { return nil }
        return take(at: index)
    }

    private mutating func take(at index: Int) -> Waiter? {
        guard let waiter = places[index].waiter.take() else { return nil }
        count -= 1
        dropEmptyPlaces()
        return waiter
    }

    /// The first waiter of the highest rank. It is looked for among all of them, because ranks change while loads wait.
    func top(by rank: (Waiter) -> Float) -> RankedWaiter? {
        var top: RankedWaiter?
        for place in places[head...] {
            guard let waiter = place.waiter else { continue }
            let other = RankedWaiter(rank: rank(waiter), waiterID: place.waiterID)
            if top.map({ other < $0 }) ?? true { top = other }
        }
        return top
    }

    private func index(of waiterID: Int) -> Int? {
        var (low, high) = (head, places.count)
        while low < high {
            let middle = (low + high) / 2
            if places[middle].waiterID < waiterID { low = middle + 1 } else { high = middle }
        }
        return low < places.count && places[low].waiterID == waiterID ? low : nil
    }

    private mutating func dropEmptyPlaces() {
        if isEmpty {
            // Room for a few is kept: at most servers few loads wait.
            places.removeAll(keepingCapacity: places.capacity <= 64)
            head = 0
            return
        }
        while places[head].waiter == nil { head += 1 }
        guard places.count > 2 * count + 64 else { return }
        places = places[head...].filter { $0.waiter != nil }
        head = 0
    }
}
