/// The timers of one mode, nearest first: a heap with four children a node, whose members know their place.
///
/// A timer in several modes stands in the heap of each and has one schedule; equal dates fire in the order
/// in which the timers were added (rules TM-12 and TM-23). Taking a timer out from the middle costs as
/// little as adding one, because its place is written in the timer (`Timer.slots`), as libev writes it in
/// the watcher. All of it is guarded by the lock of the loop.
struct TimerHeap {
    /// `Unmanaged`, because moving a node must not count references: that was two fifths of what a million
    /// timers cost. A timer is retained when it enters the heap and released when it leaves; a loop that ends
    /// takes all of its timers out.
    private struct Node {
        let deadline: LoopInstant
        let order: UInt64
        let timer: Unmanaged<Timer>

        func comesBefore(_ other: Node) -> Bool {
            deadline == other.deadline ? order < other.order : deadline < other.deadline
        }
    }

    /// A timer that was due, and the state of its slots then: if that has changed since, it is not due any
    /// more.
    struct Due {
        let timer: Timer
        let generation: UInt32
        fileprivate let deadline: LoopInstant
        fileprivate let order: UInt64
    }

    private var nodes: [Node] = []
    private let mode: Int

    init(mode: Int) {
        self.mode = mode
    }

    var isEmpty: Bool { nodes.isEmpty }
    var nearest: LoopInstant? { nodes.first?.deadline }
    var nearestTimer: Timer? { nodes.first?.timer.takeUnretainedValue() }
    var timers: [Timer] { nodes.map { $0.timer.takeUnretainedValue() } }

    mutating func insert(_ timer: Timer, deadline: LoopInstant, order: UInt64) {
        let node = Node(deadline: deadline, order: order, timer: .passRetained(timer))
        nodes.append(node)
        siftUp(node, from: nodes.count - 1)
    }

    /// Takes the timer at `index` out.
    mutating func remove(at index: Int) {
        let last = nodes.removeLast()
        guard index < nodes.count else { return last.timer.release() }
        // Whoever takes a timer out holds it, so that nothing is freed under the lock.
        nodes[index].timer.release()
        if index > 0, last.comesBefore(nodes[(index - 1) / 4]) {
            siftUp(last, from: index)
        } else {
            siftDown(last, from: index)
        }
    }

    /// All timers that are due at `now`, in firing order; they stay where they are.
    func due(at now: LoopInstant) -> [Due] {
        guard let first = nodes.first, first.deadline <= now else { return [] }
        var found: [Due] = []
        var unexplored = [0]
        while let index = unexplored.popLast() {
            let node = nodes[index]
            guard node.deadline <= now else { continue }
            let timer = node.timer.takeUnretainedValue()
            found.append(
                Due(
                    timer: timer, generation: timer.slots.generation, deadline: node.deadline,
                    order: node.order))
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

    // MARK: The heap

    private mutating func place(_ node: Node, at index: Int) {
        nodes[index] = node
        node.timer._withUnsafeGuaranteedRef { $0.slots.set(index: index, in: mode) }
    }

    private mutating func siftUp(_ node: Node, from start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 4
            guard node.comesBefore(nodes[parent]) else { break }
            place(nodes[parent], at: index)
            index = parent
        }
        place(node, at: index)
    }

    private mutating func siftDown(_ node: Node, from start: Int) {
        var index = start
        while true {
            let firstChild = 4 * index + 1
            guard firstChild < nodes.count else { break }
            var best = firstChild
            for child in (firstChild + 1)..<max(firstChild + 1, min(firstChild + 4, nodes.count))
            where nodes[child].comesBefore(nodes[best]) {
                best = child
            }
            guard nodes[best].comesBefore(node) else { break }
            place(nodes[best], at: index)
            index = best
        }
        place(node, at: index)
    }
}

/// Where a timer stands: the modes that hold it and its place in the heap of each.
///
/// Nearly every timer is in one mode, so that one needs no array.
struct TimerSlots {
    fileprivate struct Slot {
        var mode: Int32
        var index: Int32
    }

    private static let none: Int32 = -1

    private var first = Slot(mode: none, index: none)
    /// Nil for nearly every timer: an empty array is counted like any other object.
    private var others: [Slot]?
    /// Counts every change of place that was a decision (not a shift inside the heap).
    private(set) var generation: UInt32 = 0
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

    func index(in mode: Int) -> Int? {
        let slot = first.mode == mode ? first : others?.first { $0.mode == mode }
        guard let slot, slot.index != Self.none else { return nil }
        return Int(slot.index)
    }

    mutating func add(mode: Int) {
        generation &+= 1
        if isEmpty {
            first = Slot(mode: Int32(mode), index: Self.none)
        } else {
            others = (others ?? []) + [Slot(mode: Int32(mode), index: Self.none)]
        }
    }

    mutating func remove(mode: Int) {
        generation &+= 1
        if first.mode == mode {
            first = others?.popLast() ?? Slot(mode: Self.none, index: Self.none)
        } else {
            others?.removeAll { $0.mode == mode }
        }
        if others?.isEmpty ?? false { others = nil }
    }

    mutating func set(index: Int, in mode: Int) {
        if first.mode == mode {
            first.index = Int32(index)
        } else if let place = others?.firstIndex(where: { $0.mode == mode }) {
            others?[place].index = Int32(index)
        }
    }

    /// The timer has left the heap of `mode` for now, but not the mode.
    mutating func clearIndex(in mode: Int) {
        generation &+= 1
        set(index: Int(Self.none), in: mode)
    }
}
