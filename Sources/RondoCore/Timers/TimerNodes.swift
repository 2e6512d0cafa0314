internal import CRondoEv

/// A date in a heap, and its timer; the timer is nil if the date was removed.
///
/// `Unmanaged`, so that moving a node needs no reference counting and a node is trivial memory that `realloc`
/// may move: a million one-shot timers (W1) take 70 MiB less this way than in an array and a table.
/// It is safe since a timer that has a date is a member of its mode, and the loop retains its members.
struct TimerNode<Member: AnyObject> {
    var deadline: LoopInstant
    var timer: Unmanaged<Member>?
}

/// An array of nodes that is never in memory twice while it grows.
///
/// A standard array is copied to a larger buffer as it grows, and then both buffers are full: with a million
/// timers that is half of the memory they need otherwise. This one grows by `realloc`, which moves large
/// pieces by their page tables, and returns memory that it no longer needs.
struct TimerNodes<Member: AnyObject>: ~Copyable {
    typealias Node = TimerNode<Member>

    /// Capacity beyond this is given back when less than a fourth is in use.
    private static var retainedCapacity: Int { 1024 }
    /// The number of nodes that are moved to another array before their memory is given back: 64 KiB of
    /// nodes.
    private static var nodesAtOnce: Int { 4096 }

    /// Owned: allocated by `realloc`, and freed in `deinit`. Initialized up to `count`; a node is trivial.
    private(set) var start: UnsafeMutablePointer<Node>
    private(set) var count = 0
    private var capacity: Int

    init() {
        capacity = 16
        start = Self.reallocate(nil, 16)
    }

    deinit {
        free(start)
    }

    private static func reallocate(_ memory: UnsafeMutableRawPointer?, _ capacity: Int)
        -> UnsafeMutablePointer<Node>
    {
        guard let memory = realloc(memory, capacity * MemoryLayout<Node>.stride) else {
            fatalError("There is no memory for \(capacity) timers.")
        }
        return memory.assumingMemoryBound(to: TimerNode.self)
    }

    private mutating func setCapacity(_ wanted: Int) {
        capacity = max(wanted, 16)
        start = Self.reallocate(start, capacity)
    }

    var isEmpty: Bool { count == 0 }

    var all: UnsafeMutableBufferPointer<Node> { UnsafeMutableBufferPointer(start: start, count: count) }

    mutating func append(_ node: Node) {
        if count == capacity { setCapacity(2 * capacity) }
        (start + count).initialize(to: node)
        count += 1
    }

    mutating func removeLast() -> Node {
        count -= 1
        let last = start[count]
        if capacity > Self.retainedCapacity, count < capacity / 4 { setCapacity(capacity / 2) }
        return last
    }

    /// - Parameter kept: The capacity to keep, if there is more; at least `retainedCapacity`.
    mutating func removeAll(keeping kept: Int) {
        count = 0
        let kept = max(kept, Self.retainedCapacity)
        if capacity > kept { setCapacity(kept) }
    }

    /// Moves the nodes from `first` on to the end of `other`, in order, and piece by piece, so that hardly
    /// any of them are in memory twice.
    mutating func move(from first: Int, toEndOf other: inout TimerNodes<Member>) {
        let moved = count - first
        if other.count + moved > other.capacity { other.setCapacity(other.count + moved) }
        while count > first {
            let piece = min(count - first, Self.nodesAtOnce)
            (other.start + other.count + count - first - piece).initialize(
                from: start + count - piece, count: piece)
            count -= piece
            if piece == Self.nodesAtOnce { setCapacity(count) }
        }
        other.count += moved
    }

    /// Removes the nodes before `first` and those without a timer.
    mutating func compact(from first: Int) {
        var kept = 0
        for index in first..<count where start[index].timer != nil {
            start[kept] = start[index]
            kept += 1
        }
        count = kept
        if capacity > Self.retainedCapacity, count < capacity / 4 { setCapacity(capacity / 2) }
    }
}
