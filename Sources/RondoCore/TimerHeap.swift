internal import CEv

/// The timers of one mode: a table of places, one a timer, and a heap of their dates, nearest first.
///
/// A timer in several modes has a place in each and one schedule; equal dates fire in the order in which the
/// timers were added (rules TM-12 and TM-23). All of it is guarded by the lock of the loop.
///
/// A million timers do not fit into the processor's caches, so what is done often stays away from most:
///
/// - The heap knows dates, and where each timer stands in it nobody knows. Moving a node writes nothing else.
/// - A date is taken back by a new *stamp* on its place. Its node, which bears the old one, is dead then and
///   goes when somebody asks for the nearest date and it is the first, or when half of the heap is dead.
/// - What is due leaves the heap in one go and is sorted in its place; with equal dates only then. (A buffer to sort
///   in would be a large piece of memory, and to get one costs glibc a walk over all small ones freed before.)
struct TimerHeap {
    /// A date of the timer that has this place; dead if the place bears another stamp by now.
    private struct Node {
        let deadline: LoopInstant
        let place: Int32
        let stamp: UInt32
    }

    private struct Place {
        /// `Unmanaged`, because moving it must not count references. Retained when it is admitted, released
        /// when it is dismissed; a loop that ends dismisses all of its timers. Nil where the place is free.
        var timer: Unmanaged<Timer>?
        var order: UInt64
        /// Odd while it has a date.
        var stamp: UInt32
        /// Of a free place, the next free one.
        var nextFree: Int32

        var hasDate: Bool { stamp & 1 == 1 }
    }

    private static let none: Int32 = -1
    /// Dead nodes that are not worth the work of removing them.
    private static let toleratedDead = 64
    /// How many nodes' room is kept for the next timers that are due together, or half of what the heap has.
    private static let keptCapacity = 1024

    /// How many timers fire while one comes from memory.
    private static let lookAhead = 6

    /// Four children a node.
    private var nodes: [Node] = []
    /// What was found due and has not fired yet, from `nextDue` on.
    private var dueNodes: [Node] = []
    private var nextDue = 0
    private var places: [Place] = []
    private var firstFree = none
    /// Places with a date.
    private var dateCount = 0
    /// Timers in the mode, those that are firing just now included.
    private(set) var count = 0

    /// The timers in the mode, in no particular order.
    var timers: [Timer] { places.compactMap { $0.timer?.takeUnretainedValue() } }

    // MARK: - Membership

    /// - Returns: The place of `timer`, which has no date yet.
    mutating func admit(_ timer: Timer, order: UInt64) -> Int32 {
        count += 1
        guard firstFree != Self.none else {
            places.append(
                Place(timer: .passRetained(timer), order: order, stamp: 0, nextFree: Self.none))
            return Int32(places.count - 1)
        }
        let place = firstFree
        firstFree = places[Int(place)].nextFree
        places[Int(place)].timer = .passRetained(timer)
        places[Int(place)].order = order
        return place
    }

    /// Whoever takes a timer out holds it, so that nothing is freed under the lock.
    mutating func dismiss(_ place: Int32) {
        clearDate(of: place)
        places[Int(place)].timer.take()?.release()
        places[Int(place)].nextFree = firstFree
        firstFree = place
        count -= 1
    }

    func order(of place: Int32) -> UInt64 { places[Int(place)].order }

    // MARK: - Dates

    mutating func setDate(_ deadline: LoopInstant, of place: Int32) {
        let hadDate = places[Int(place)].hasDate
        if hadDate { clearDate(of: place) }
        let node = Node(deadline: deadline, place: place, stamp: newStamp(for: place))
        dateCount += 1
        nodes.append(node)
        nodes.withUnsafeMutableBufferPointer { Self.siftUp(node, from: $0.count - 1, in: $0) }
    }

    mutating func clearDate(of place: Int32) {
        guard places[Int(place)].hasDate else { return }
        _ = newStamp(for: place)
        dateCount -= 1
        if nodes.count > 2 * dateCount + Self.toleratedDead { removeAllDead() }
    }

    private mutating func newStamp(for place: Int32) -> UInt32 {
        // Before a stamp comes for the second time, nothing bears it any more.
        if places[Int(place)].stamp == .max { removeAllDead() }
        places[Int(place)].stamp &+= 1
        return places[Int(place)].stamp
    }

    private func isAlive(_ node: Node) -> Bool { places[Int(node.place)].stamp == node.stamp }

    private func timer(of node: Node) -> Timer? { places[Int(node.place)].timer?.takeUnretainedValue() }

    // Mutating, since dead nodes that are the first go; and inlined, as `nearest` is, since every pass asks.
    @inline(__always)
    private mutating func nearestNode() -> Node? {
        skipDeadDue()
        removeDeadOnTop()
        guard nextDue < dueNodes.count else { return nodes.first }
        let due = dueNodes[nextDue]
        // What was added since may have an earlier date.
        guard let first = nodes.first, first.deadline < due.deadline else { return due }
        return first
    }

    @inline(__always)
    var nearest: LoopInstant? { mutating get { nearestNode()?.deadline } }

    var nearestTimer: Timer? { mutating get { nearestNode().flatMap(timer) } }

    // MARK: - What is due

    /// Notes which timers are due at `now`; `firstDue` tells them one by one. What an outer batch has not
    /// fired yet, where a timer's block runs the loop, is among them.
    mutating func collectDue(at now: LoopInstant) {
        removeDeadDue()
        removeDeadOnTop()
        // One after the other from the top, unless they are many: then it is less work to go through all.
        var rest = max(16, nodes.count / 16)
        while let first = nodes.first, first.deadline <= now {
            guard rest > 0 else {
                collectAllDue(at: now)
                break
            }
            rest -= 1
            dueNodes.append(first)
            removeFirst()
            removeDeadOnTop()
        }
        guard dueNodes.count > 1 else { return }
        dueNodes.withUnsafeMutableBufferPointer { nodes in
            places.withUnsafeBufferPointer { places in
                InPlaceSort(order: FiringOrder(places: places)).sort(nodes)
            }
        }
    }

    private mutating func collectAllDue(at now: LoopInstant) {
        removeAllDead()
        var kept = 0
        nodes.withUnsafeMutableBufferPointer { nodes in
            for node in nodes {
                if node.deadline <= now {
                    dueNodes.append(node)
                } else {
                    nodes[kept] = node
                    kept += 1
                }
            }
        }
        nodes.removeLast(nodes.count - kept)
        heapify()
    }

    private struct FiringOrder: SortOrder {
        let places: UnsafeBufferPointer<Place>

        @inline(__always)
        func comesBefore(_ one: Node, _ other: Node) -> Bool {
            one.deadline == other.deadline
                ? places[Int(one.place)].order < places[Int(other.place)].order
                : one.deadline < other.deadline
        }
    }

    /// The first of those noted that has not fired, and to which nothing has happened since. It stays first
    /// until its date is cleared. (Mutating, so that the heap is not copied first.)
    mutating func firstDue() -> Timer? {
        skipDeadDue()
        guard nextDue < dueNodes.count else { return nil }
        fetchNextDue()
        return timer(of: dueNodes[nextDue])
    }

    /// Has those that come soon brought from memory, where they lie about, while the first one fires.
    private func fetchNextDue() {
        guard nextDue + Self.lookAhead < dueNodes.count else { return }
        places.withUnsafeBufferPointer { places in
            guard let start = places.baseAddress else { return }
            if nextDue + 2 * Self.lookAhead < dueNodes.count {
                rondo_prefetch(start + Int(dueNodes[nextDue + 2 * Self.lookAhead].place))
            }
            guard let timer = places[Int(dueNodes[nextDue + Self.lookAhead].place)].timer else { return }
            // It takes two lines of the cache, and what its block holds was most often allocated just before it.
            rondo_prefetch(timer.toOpaque() - 48)
            rondo_prefetch(timer.toOpaque())
            rondo_prefetch(timer.toOpaque() + 64)
        }
    }

    /// All timers that are due at `now`, in firing order; they stay where they are.
    func dueTimers(at now: LoopInstant) -> [Timer] {
        var found = dueNodes[nextDue...].filter { isAlive($0) }
        var unexplored = [0]
        while let index = unexplored.popLast() {
            guard index < nodes.count, nodes[index].deadline <= now else { continue }
            if isAlive(nodes[index]) { found.append(nodes[index]) }
            unexplored += (4 * index + 1)...(4 * index + 4)
        }
        let sorted = places.withUnsafeBufferPointer { places in
            found.sorted { FiringOrder(places: places).comesBefore($0, $1) }
        }
        return sorted.compactMap(timer)
    }

    // MARK: - Dead nodes

    private mutating func skipDeadDue() {
        guard nextDue < dueNodes.count else { return }
        while nextDue < dueNodes.count, !isAlive(dueNodes[nextDue]) { nextDue += 1 }
        guard nextDue == dueNodes.count else { return }
        let kept = max(Self.keptCapacity, nodes.capacity / 2)
        dueNodes.removeAll(keepingCapacity: dueNodes.capacity <= kept)
        nextDue = 0
    }

    private mutating func removeDeadOnTop() {
        while let first = nodes.first, !isAlive(first) { removeFirst() }
    }

    /// Those that have fired go too. A dead node must not be compared with others: its place may be another timer's.
    private mutating func removeDeadDue() {
        guard !dueNodes.isEmpty else { return }
        dueNodes.removeFirst(nextDue)
        nextDue = 0
        dueNodes.removeAll { [places] in places[Int($0.place)].stamp != $0.stamp }
    }

    private mutating func removeAllDead() {
        removeDeadDue()
        var kept = 0
        nodes.withUnsafeMutableBufferPointer { nodes in
            places.withUnsafeBufferPointer { places in
                for node in nodes {
                    // No branch: which nodes are dead the processor cannot guess.
                    nodes[kept] = node
                    kept += places[Int(node.place)].stamp == node.stamp ? 1 : 0
                }
            }
        }
        nodes.removeLast(nodes.count - kept)
        heapify()
    }

    // MARK: - The heap

    private mutating func removeFirst() {
        let last = nodes.removeLast()
        nodes.withUnsafeMutableBufferPointer { if !$0.isEmpty { Self.siftDown(last, from: 0, in: $0) } }
    }

    private mutating func heapify() {
        nodes.withUnsafeMutableBufferPointer { nodes in
            for index in stride(from: (nodes.count + 2) / 4 - 1, through: 0, by: -1) {
                Self.siftDown(nodes[index], from: index, in: nodes)
            }
        }
    }

    private static func siftUp(_ node: Node, from start: Int, in nodes: UnsafeMutableBufferPointer<Node>) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 4
            guard node.deadline < nodes[parent].deadline else { break }
            nodes[index] = nodes[parent]
            index = parent
        }
        nodes[index] = node
    }

    private static func siftDown(_ node: Node, from start: Int, in nodes: UnsafeMutableBufferPointer<Node>) {
        var index = start
        while true {
            let firstChild = 4 * index + 1
            guard firstChild < nodes.count else { break }
            var best = firstChild
            var child = firstChild + 1
            let end = min(firstChild + 4, nodes.count)
            while child < end {
                if nodes[child].deadline < nodes[best].deadline { best = child }
                child += 1
            }
            guard nodes[best].deadline < node.deadline else { break }
            nodes[index] = nodes[best]
            index = best
        }
        nodes[index] = node
    }
}

/// The modes that hold a timer, and its place in each.
///
/// Nearly every timer is in one mode, so that one needs no array.
struct TimerSlots {
    struct Slot {
        let mode: Int
        let place: Int32
    }

    /// The first mode and, in the highest bit, `isFiring`: a million timers have that in no byte of its own.
    private var bits = noMode
    private var firstPlace: Int32 = 0
    /// Nil for nearly every timer: an empty array is counted like any other object.
    private var others: [Slot]?

    private static let firingBit: UInt32 = 1 << 31
    private static let noMode = firingBit - 1

    private var firstMode: UInt32 {
        get { bits & ~Self.firingBit }
        set { bits = bits & Self.firingBit | newValue }
    }

    /// The loop is calling the timer: it has no date, and yet belongs to its modes (rule TM-25).
    var isFiring: Bool {
        get { bits & Self.firingBit != 0 }
        set { bits = newValue ? bits | Self.firingBit : bits & ~Self.firingBit }
    }

    var isEmpty: Bool { firstMode == Self.noMode }

    /// One of them; nil if there is none.
    var first: Slot? { isEmpty ? nil : Slot(mode: Int(firstMode), place: firstPlace) }

    func forEach(_ body: (Slot) -> Void) {
        if let first { body(first) }
        if let others { for slot in others { body(slot) } }
    }

    var modes: [Int] {
        var modes: [Int] = []
        forEach { modes.append($0.mode) }
        return modes
    }

    func place(in mode: Int) -> Int32? {
        if firstMode == mode { return firstPlace }
        return others?.first { $0.mode == mode }?.place
    }

    mutating func add(_ slot: Slot) {
        if isEmpty {
            firstMode = UInt32(slot.mode)
            firstPlace = slot.place
        } else {
            others = (others ?? []) + [slot]
        }
    }

    mutating func remove(mode: Int) {
        if firstMode == mode {
            let next = others?.popLast()
            firstMode = next.map { UInt32($0.mode) } ?? Self.noMode
            firstPlace = next?.place ?? 0
        } else {
            others?.removeAll { $0.mode == mode }
        }
        if others?.isEmpty ?? false { others = nil }
    }
}
