internal import CRondoEv

/// An object whose dates a `TimerHeap` keeps.
protocol TimerHeapMember: AnyObject {
    /// The heap reads the order of addition here, and writes the position of the date in the heap.
    var registration: TimerRegistration { get set }
}

/// A timer and the date for which it waits.
struct TimerDate<Member: AnyObject> {
    let timer: Member
    let deadline: LoopInstant
}

extension TimerDate {
    /// Returns nil if the date has been removed.
    init?(_ node: TimerNode<Member>) {
        guard let timer = node.timer?.takeUnretainedValue() else { return nil }
        self.init(timer: timer, deadline: node.deadline)
    }
}

/// The dates of the timers of one mode, nearest first.
///
/// A timer in several modes has the same date in each; timers with equal dates fire in the order in which
/// they were added (rules TM-12 and TM-23). The lock of the loop, which also retains the timers, guards all
/// of this.
///
/// A million timers do not fit into the processor's caches, so frequent operations touch few of them:
///
/// - A date is removed, or read, by its *index*, which the timer stores. Writing an index with every node
///   that moves would cost more than moving it, and a program whose timers are each in one mode and all fire
///   never needs one. So indices are written for all timers when the first date is removed, which touches
///   every timer once, and then maintained until the heap is rebuilt.
/// - A removed date leaves a *gap*, a node without a timer. A gap at the top is removed when the nearest date
///   is asked for; all are removed when more than half of the heap, and `toleratedGaps` more, are gaps.
/// - Due timers leave the heap together and are sorted in place; equal dates are put in order only then. (A
///   buffer to sort in would be a large piece of memory, and to allocate one glibc walks over all small
///   pieces freed before.)
///
/// A class, since it owns memory that cannot be copied. It knows its timers only as `Member`, and nothing of
/// their loop.
final class TimerHeap<Member: TimerHeapMember> {
    private typealias Node = TimerNode<Member>

    /// The number of timers that fire while one is prefetched from memory.
    private static var lookAhead: Int { 6 }

    private let mode: Int
    // `@exclusivity(unchecked)` for `nodes` and `due`: they are used under the loop's lock, and neither is
    // handed out while it changes. With the checks bench-guard's timer.scheduled takes 25 % more
    // instructions, and timer.fired 19 %.
    /// A heap in which each node has four children.
    @exclusivity(unchecked) private var nodes = TimerNodes<Member>()
    /// The timers that were found due, from `nextDue` on those that have not fired yet.
    @exclusivity(unchecked) private var due = TimerNodes<Member>()
    private var nextDue = 0
    /// Whether timers know their indices: an index is one in `nodes`, or, if negative, the complement of one
    /// in `due`.
    private var keepsIndices = false
    /// The number of gaps in `nodes`.
    private var gaps = 0
    /// The number of gaps not worth the work of removing them.
    private static var toleratedGaps: Int { 64 }
    /// The number of timers in the mode, including those that are firing.
    private(set) var count = 0

    /// - Parameter mode: The index of the mode in its loop.
    init(mode: Int) {
        self.mode = mode
    }

    /// In no particular order.
    var dates: [TimerDate<Member>] {
        nodes.all.compactMap { TimerDate($0) } + due.all[nextDue...].compactMap { TimerDate($0) }
    }

    // MARK: - Members

    /// Called when a timer has entered the mode.
    func noteAdded() { count += 1 }

    /// Called when a timer has left the mode.
    func noteRemoved() { count -= 1 }

    // MARK: - Dates

    /// - Parameter timer: A member of the mode that has no date.
    func insert(_ timer: Member, _ deadline: LoopInstant) {
        let node = Node(deadline: deadline, timer: .passUnretained(timer))
        nodes.append(node)
        siftUp(node, from: nodes.count - 1)
    }

    /// - Parameter timer: A timer that has a date.
    /// - Returns: The date.
    @discardableResult
    func remove(_ timer: Member) -> LoopInstant {
        let index = index(of: timer)
        guard index >= 0 else {
            let deadline = due.start[~index].deadline
            due.start[~index].timer = nil
            skipRemovedDue()
            return deadline
        }
        let deadline = nodes.start[index].deadline
        nodes.start[index].timer = nil
        gaps += 1
        if gaps > nodes.count / 2 + Self.toleratedGaps {
            removeGaps()
            heapify()
        }
        return deadline
    }

    /// - Parameter timer: A timer that has a date.
    func deadline(of timer: Member) -> LoopInstant {
        let index = index(of: timer)
        return index >= 0 ? nodes.start[index].deadline : due.start[~index].deadline
    }

    private var nearestNode: Node? {
        if gaps > 0 { removeGapsOnTop() }
        let first = nodes.isEmpty ? nil : nodes.start[0]
        guard nextDue < due.count else { return first }
        // A timer that was added after the due ones were collected may have an earlier date.
        if let first, first.deadline < due.start[nextDue].deadline { return first }
        return due.start[nextDue]
    }

    var nearest: LoopInstant? { nearestNode?.deadline }

    var nearestTimer: TimerDate<Member>? { nearestNode.flatMap { TimerDate($0) } }

    // MARK: - Due timers

    /// Collects the timers that are due at `now`; `takeFirstDue` then returns them one by one. If a timer's
    /// block runs the loop, they include those that the outer batch has not fired yet.
    func collectDue(at now: LoopInstant) {
        due.compact(from: nextDue)
        nextDue = 0
        // One by one from the top; if they are many, it is less work to go through the whole heap.
        var rest = max(16, nodes.count / 16)
        removeGapsOnTop()
        while !nodes.isEmpty, nodes.start[0].deadline <= now {
            guard rest > 0 else {
                collectAllDue(at: now)
                break
            }
            rest -= 1
            due.append(nodes.start[0])
            removeFirst()
            removeGapsOnTop()
        }
        if due.count > 1 { Self.sort(due.all) }
        if keepsIndices { noteIndicesOfDue() }
    }

    private func collectAllDue(at now: LoopInstant) {
        removeGaps()
        var (kept, end) = (0, nodes.count)
        while kept < end {
            if nodes.start[kept].deadline > now {
                kept += 1
            } else {
                end -= 1
                nodes.all.swapAt(kept, end)
            }
        }
        nodes.move(from: kept, toEndOf: &due)
        heapify()
    }

    private struct DateOrder: SortOrder {
        func comesBefore(_ one: Node, _ other: Node) -> Bool { one.deadline < other.deadline }
    }

    /// Sorts by date, and timers of equal date in the order of addition, which is read once from each timer.
    private static func sort(_ nodes: UnsafeMutableBufferPointer<Node>) {
        let sort = InPlaceSort(order: DateOrder())
        // What was taken from the top one after the other is in order.
        if !isInOrder(nodes) { sort.sort(nodes) }
        var first = 0
        while first < nodes.count {
            let deadline = nodes[first].deadline
            var end = first + 1
            while end < nodes.count, nodes[end].deadline == deadline { end += 1 }
            if end - first > 1 {
                // Meanwhile the order is stored in place of the date.
                for index in first..<end { nodes[index].deadline.nanoseconds = order(of: nodes[index]) }
                sort.sort(UnsafeMutableBufferPointer(rebasing: nodes[first..<end]))
                for index in first..<end { nodes[index].deadline = deadline }
            }
            first = end
        }
    }

    private static func isInOrder(_ nodes: UnsafeMutableBufferPointer<Node>) -> Bool {
        nodes.indices.dropFirst().allSatisfy { nodes[$0 - 1].deadline <= nodes[$0].deadline }
    }

    private static func order(of node: Node) -> Int64 {
        node.timer.map { $0._withUnsafeGuaranteedRef { Int64($0.registration.order ?? 0) } } ?? 0
    }

    /// Takes the first collected timer that still has its date; its date in this mode is removed.
    func takeFirstDue() -> TimerNode<Member>? {
        guard nextDue < due.count else { return nil }
        let node = due.start[nextDue]
        fetchNextDue()
        nextDue += 1
        skipRemovedDue()
        return node
    }

    private func skipRemovedDue() {
        while nextDue < due.count, due.start[nextDue].timer == nil { nextDue += 1 }
        guard nextDue == due.count else { return }
        // Capacity is kept for the next batch of due timers.
        due.removeAll(keeping: nodes.count / 2)
        nextDue = 0
    }

    /// Prefetches a timer that fires soon while the present one fires.
    private func fetchNextDue() {
        guard nextDue + Self.lookAhead < due.count, let timer = due.start[nextDue + Self.lookAhead].timer
        else {
            return
        }
        // A timer takes two cache lines, and the context of its block was most often allocated just before
        // it. Worth 18 % of the CPU time of W1's million timers, together with sorting in place.
        rondo_prefetch(timer.toOpaque() - 48)
        rondo_prefetch(timer.toOpaque())
        rondo_prefetch(timer.toOpaque() + 48)
    }

    /// All timers that are due at `now`, in firing order; they are not removed.
    func dueTimers(at now: LoopInstant) -> [TimerDate<Member>] {
        var found = due.all[nextDue...].filter { $0.timer != nil }
        var unexplored = [0]
        while let index = unexplored.popLast() {
            guard index < nodes.count, nodes.start[index].deadline <= now else { continue }
            if nodes.start[index].timer != nil { found.append(nodes.start[index]) }
            unexplored += (4 * index + 1)...(4 * index + 4)
        }
        found.withUnsafeMutableBufferPointer { Self.sort($0) }
        return found.compactMap { TimerDate($0) }
    }

    // MARK: - Indices

    private func index(of timer: Member) -> Int {
        if !keepsIndices { noteIndices() }
        return Int(timer.registration.index(in: mode))
    }

    private func noteIndices() {
        for index in 0..<nodes.count { note(Int32(truncatingIfNeeded: index), of: nodes.start[index]) }
        noteIndicesOfDue()
        keepsIndices = true
    }

    private func noteIndicesOfDue() {
        for index in nextDue..<due.count { note(~Int32(truncatingIfNeeded: index), of: due.start[index]) }
    }

    private func note(_ index: Int32, of node: Node) {
        guard let timer = node.timer else { return }
        timer._withUnsafeGuaranteedRef { $0.registration.setIndex(index, in: mode) }
    }

    // MARK: - Gaps

    private func removeGapsOnTop() {
        while !nodes.isEmpty, nodes.start[0].timer == nil {
            gaps -= 1
            removeFirst()
        }
    }

    /// Removes all gaps. The caller then has to call `heapify()`.
    private func removeGaps() {
        if gaps > 0 { nodes.compact(from: 0) }
        gaps = 0
    }

    // MARK: - The heap

    private func removeFirst() {
        let last = nodes.removeLast()
        if !nodes.isEmpty { siftDown(last, from: 0) }
    }

    private func heapify() {
        keepsIndices = false
        for index in stride(from: (nodes.count + 2) / 4 - 1, through: 0, by: -1) {
            siftDown(nodes.start[index], from: index)
        }
    }

    private func put(_ node: Node, at index: Int) {
        nodes.start[index] = node
        if keepsIndices { note(Int32(truncatingIfNeeded: index), of: node) }
    }

    private func siftUp(_ node: Node, from start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 4
            guard node.deadline < nodes.start[parent].deadline else { break }
            put(nodes.start[parent], at: index)
            index = parent
        }
        put(node, at: index)
    }

    private func siftDown(_ node: Node, from start: Int) {
        let (heap, count) = (nodes.start, nodes.count)
        var index = start
        while true {
            let firstChild = 4 * index + 1
            guard firstChild < count else { break }
            // Which child is nearest is known once they have come from memory; the children of all four come
            // meanwhile: 5 % of the CPU time of W1's million timers.
            let grandchildren = UnsafeRawPointer(heap + (4 * firstChild + 1))
            for line in 0..<4 { rondo_prefetch(grandchildren + 64 * line) }
            var best = firstChild
            var child = firstChild + 1
            let end = min(firstChild + 4, count)
            while child < end {
                if heap[child].deadline < heap[best].deadline { best = child }
                child += 1
            }
            guard heap[best].deadline < node.deadline else { break }
            put(heap[best], at: index)
            index = best
        }
        put(node, at: index)
    }
}
