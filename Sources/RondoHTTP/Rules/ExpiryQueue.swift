/// Numbers of slots by the time at which what they hold expires, the soonest first.
///
/// A binary heap that knows where each number stands: a date that changes moves one number, and leaves nothing behind to
/// be cleared away later. Every operation takes as many steps as the logarithm of the count.
struct ExpiryQueue: Sendable {
    private struct Node {
        var expires: Double
        var slot: Int
    }

    private var heap: [Node] = []
    /// Where each slot stands in the heap; a slot that is not in it has −1.
    private var places: [Int] = []

    /// The slot that expires first.
    var first: Int? { heap.first?.slot }

    /// Adds a slot, or moves it to its new date. Slots are small numbers: there is an entry for each up to the largest.
    mutating func set(_ slot: Int, expires: Double) {
        while places.count <= slot { places.append(-1) }
        let node = Node(expires: expires, slot: slot)
        if places[slot] < 0 {
            heap.append(node)
            rise(node, from: heap.count - 1)
        } else {
            settle(node, at: places[slot])
        }
    }

    mutating func remove(_ slot: Int) {
        guard slot < places.count, places[slot] >= 0, let last = heap.popLast() else { return }
        let place = places[slot]
        places[slot] = -1
        // The last one takes the place that has become free, unless it was its own.
        if place < heap.count { settle(last, at: place) }
    }

    private mutating func settle(_ node: Node, at place: Int) {
        if place > 0, node.expires < heap[(place - 1) / 2].expires {
            rise(node, from: place)
        } else {
            sink(node, from: place)
        }
    }

    private mutating func rise(_ node: Node, from start: Int) {
        var place = start
        while place > 0, node.expires < heap[(place - 1) / 2].expires {
            put(heap[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(node, at: place)
    }

    private mutating func sink(_ node: Node, from start: Int) {
        var place = start
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].expires < heap[child].expires { child += 1 }
            guard heap[child].expires < node.expires else { break }
            put(heap[child], at: place)
            place = child
        }
        put(node, at: place)
    }

    private mutating func put(_ node: Node, at place: Int) {
        heap[place] = node
        places[node.slot] = place
    }
}
