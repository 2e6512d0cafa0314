/// The timers of one mode, nearest first: a heap with four children a node, and a table of places.
///
/// A timer in several modes stands in the heap of each and has one schedule; equal dates fire in the order
/// in which the timers were added (rules TM-12 and TM-23). Taking a timer out from the middle costs as
/// little as adding one: the timer knows its place (`Timer.slots`), a number that stays, and the table knows
/// which node of the heap that is. Moving a node writes to the table and leaves the timers themselves alone:
/// a million of them would not fit into the processor's caches. All of it is guarded by the lock of the loop.
struct TimerHeap {
    private struct Node {
        let deadline: LoopInstant
        let order: UInt64
        let place: Int32

        func comesBefore(_ other: Node) -> Bool {
            deadline == other.deadline ? order < other.order : deadline < other.deadline
        }
    }

    /// What a place holds.
    private struct Place {
        /// `Unmanaged`, because moving a node must not count references. A timer is retained when it enters
        /// the heap and released when it leaves; a loop that ends takes all of its timers out.
        var timer: Unmanaged<Timer>
        /// Of its node; of a free place, the next free one.
        var index: Int32
        /// How often it has been freed.
        var generation: UInt32 = 0
    }

    /// A timer that was due: if its place was freed since, it is not due any more. It keeps nothing alive, so that
    /// a million of them are sorted as numbers are.
    struct Due {
        fileprivate let deadline: LoopInstant
        fileprivate let order: UInt64
        fileprivate let place: Int32
        fileprivate let generation: UInt32
    }

    private static let none: Int32 = -1

    private var nodes: [Node] = []
    private var places: [Place] = []
    private var firstFree = none
    private let mode: Int

    init(mode: Int) {
        self.mode = mode
    }

    var isEmpty: Bool { nodes.isEmpty }
    var nearest: LoopInstant? { nodes.first?.deadline }
    var nearestTimer: Timer? { nodes.first.map(timer) }
    var timers: [Timer] { nodes.map(timer) }

    private func timer(of node: Node) -> Timer { places[Int(node.place)].timer.takeUnretainedValue() }

    /// Nil: something has happened to it since.
    func timer(of due: Due) -> Timer? {
        isStill(due) ? places[Int(due.place)].timer.takeUnretainedValue() : nil
    }

    func isStill(_ due: Due) -> Bool { places[Int(due.place)].generation == due.generation }

    mutating func insert(_ timer: Timer, deadline: LoopInstant, order: UInt64) {
        let place = takePlace(for: timer)
        timer.slots.set(place: place, in: mode)
        let node = Node(deadline: deadline, order: order, place: place)
        nodes.append(node)
        siftUp(node, from: nodes.count - 1)
    }

    private mutating func takePlace(for timer: Timer) -> Int32 {
        guard firstFree != Self.none else {
            places.append(Place(timer: .passRetained(timer), index: 0))
            return Int32(places.count - 1)
        }
        let place = firstFree
        firstFree = places[Int(place)].index
        places[Int(place)].timer = .passRetained(timer)
        return place
    }

    /// Takes the timer out that has this place.
    mutating func remove(at place: Int32) {
        let left = places[Int(place)]
        places[Int(place)].index = firstFree
        places[Int(place)].generation &+= 1
        firstFree = place
        let last = nodes.removeLast()
        let index = Int(left.index)
        if index < nodes.count {
            if index > 0, last.comesBefore(nodes[(index - 1) / 4]) {
                siftUp(last, from: index)
            } else {
                siftDown(last, from: index)
            }
        }
        // Whoever takes a timer out holds it, so that nothing is freed under the lock.
        left.timer.release()
    }

    /// All timers that are due at `now`, in firing order; they stay where they are.
    func due(at now: LoopInstant) -> [Due] {
        guard let first = nodes.first, first.deadline <= now else { return [] }
        var found: [Due] = []
        var unexplored = [0]
        while let index = unexplored.popLast() {
            let node = nodes[index]
            guard node.deadline <= now else { continue }
            found.append(
                Due(
                    deadline: node.deadline, order: node.order, place: node.place,
                    generation: places[Int(node.place)].generation))
            let firstChild = 4 * index + 1
            for child in firstChild..<max(firstChild, min(firstChild + 4, nodes.count)) {
                unexplored.append(child)
            }
        }
        if found.count > 1 {
            found.sort { $0.deadline == $1.deadline ? $0.order < $1.order : $0.deadline < $1.deadline }
        }
        return found
    }

    func dueTimers(at now: LoopInstant) -> [Timer] { due(at: now).compactMap { timer(of: $0) } }

    // MARK: The heap

    private mutating func siftUp(_ node: Node, from start: Int) {
        withHeap { $0.siftUp(node, from: start) }
    }

    private mutating func siftDown(_ node: Node, from start: Int) {
        withHeap { $0.siftDown(node, from: start) }
    }

    private mutating func withHeap(_ body: (Heap) -> Void) {
        nodes.withUnsafeMutableBufferPointer { nodes in
            places.withUnsafeMutableBufferPointer { places in body(Heap(nodes: nodes, places: places)) }
        }
    }

    /// Both arrays in place, which saves the moves of a node a look at who else has them.
    private struct Heap {
        // Safe: they last for one call of `withHeap`, and every index is below the count of its array.
        let nodes: UnsafeMutableBufferPointer<Node>
        let places: UnsafeMutableBufferPointer<Place>

        private func put(_ node: Node, at index: Int) {
            nodes[index] = node
            places[Int(node.place)].index = Int32(index)
        }

        func siftUp(_ node: Node, from start: Int) {
            var index = start
            while index > 0 {
                let parent = (index - 1) / 4
                guard node.comesBefore(nodes[parent]) else { break }
                put(nodes[parent], at: index)
                index = parent
            }
            put(node, at: index)
        }

        func siftDown(_ node: Node, from start: Int) {
            var index = start
            while true {
                let firstChild = 4 * index + 1
                guard firstChild < nodes.count else { break }
                var best = firstChild
                var child = firstChild + 1
                let end = min(firstChild + 4, nodes.count)
                while child < end {
                    if nodes[child].comesBefore(nodes[best]) { best = child }
                    child += 1
                }
                guard nodes[best].comesBefore(node) else { break }
                put(nodes[best], at: index)
                index = best
            }
            put(node, at: index)
        }
    }
}

/// Where a timer stands: the modes that hold it and its place in the heap of each.
///
/// Nearly every timer is in one mode, so that one needs no array.
struct TimerSlots {
    fileprivate struct Slot {
        var mode: Int32
        var place: Int32
    }

    private static let none: Int32 = -1

    private var first = Slot(mode: none, place: none)
    /// Nil for nearly every timer: an empty array is counted like any other object.
    private var others: [Slot]?
    /// The loop is calling the timer: it stands in no heap, and yet belongs to its modes (rule TM-25).
    var isFiring = false
    /// The place among timers of equal date.
    var order: UInt64 = 0

    var isEmpty: Bool { first.mode == Self.none }

    /// The modes as they are now; what happens to the slots while one goes through them does not matter.
    var modes: Modes { Modes(first: isEmpty ? nil : Int(first.mode), others: others) }

    struct Modes: Sequence, IteratorProtocol {
        fileprivate var first: Int?
        fileprivate var others: [Slot]?

        mutating func next() -> Int? {
            defer { first = others?.popLast().map { Int($0.mode) } }
            return first
        }
    }

    func contains(mode: Int) -> Bool {
        first.mode == mode || others?.contains { $0.mode == mode } ?? false
    }

    func place(in mode: Int) -> Int32? {
        let slot = first.mode == mode ? first : others?.first { $0.mode == mode }
        guard let slot, slot.place != Self.none else { return nil }
        return slot.place
    }

    mutating func add(mode: Int) {
        if isEmpty {
            first = Slot(mode: Int32(mode), place: Self.none)
        } else {
            others = (others ?? []) + [Slot(mode: Int32(mode), place: Self.none)]
        }
    }

    mutating func remove(mode: Int) {
        if first.mode == mode {
            first = others?.popLast() ?? Slot(mode: Self.none, place: Self.none)
        } else {
            others?.removeAll { $0.mode == mode }
        }
        if others?.isEmpty ?? false { others = nil }
    }

    mutating func set(place: Int32, in mode: Int) {
        if first.mode == mode {
            first.place = place
        } else if let index = others?.firstIndex(where: { $0.mode == mode }) {
            others?[index].place = place
        }
    }

    /// The timer has left the heap of `mode` for now, but not the mode.
    mutating func clearPlace(in mode: Int) {
        set(place: Self.none, in: mode)
    }
}
