/// Slot numbers ordered by the expiry of their contents, the soonest first.
///
/// A binary heap that knows the position of each number: a changed date moves one number, and leaves no stale
/// entry behind. Each operation takes a number of steps that grows with the logarithm of the count.
struct ExpiryQueue: Sendable {
    private struct Node {
        var expires: Double
        var slot: Int
    }

    private var heap: [Node] = []
    /// The position of each slot in the heap; −1 for a slot that is not in it.
    private var places: [Int] = []

    /// The slot that expires first.
    var first: Int? { heap.first?.slot }

    /// Adds a slot, or moves it to its new date. Slots should be small numbers: `places` has an entry for
    /// each number up to the largest.
    mutating func set(_ slot: Int, expires: Double) {
        while places.count <= slot { places.append(-1) }
        let node = Node(expires: expires, slot: slot)
        if places[slot] < 0 {
            heap.append(node)
            rise(node, from: heap.count - 1)
        } else {
            restore(node, at: places[slot])
        }
    }

    mutating func remove(_ slot: Int) {
        guard slot < places.count, places[slot] >= 0, let last = heap.popLast() else { return }
        let place = places[slot]
        places[slot] = -1
        // The last node moves to the free position, unless that was its own.
        if place < heap.count { restore(last, at: place) }
    }

    private mutating func restore(_ node: Node, at place: Int) {
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
