/// A block that was performed and has not run yet.
///
/// `@unchecked Sendable`: the block was passed as `sending`, so the caller has kept no reference to the
/// values it captures. It is run once, on the loop's thread, or released unrun.
struct PerformedBlock: @unchecked Sendable {
    let run: () -> Void
}

/// A queue of blocks: appended at the end, taken from the front.
///
/// Not an array: that would retain each block once more while it is called, and so fetch the block's memory
/// once more from the processor of the thread that performed it.
///
/// `@unchecked Sendable`: it owns its memory, and cannot be copied.
struct PerformedBlocks: ~Copyable, @unchecked Sendable {
    /// Capacity that is kept for the next blocks, so that performing one at a time allocates nothing. A burst
    /// may use more, which is freed afterwards.
    static let retainedCapacity = 1024
    private static let smallestCapacity = 16

    /// Owned: allocated in `makeRoom` and freed in `deinit` or `shrink`; initialised from `first` up to
    /// `end`.
    private var base: UnsafeMutablePointer<PerformedBlock>?
    private var capacity = 0
    private var first = 0
    private var end = 0

    init() {}

    deinit {
        guard let base else { return }
        (base + first).deinitialize(count: end - first)
        base.deallocate()
    }

    var isEmpty: Bool { first == end }
    var count: Int { end - first }

    mutating func append(_ block: PerformedBlock) {
        var block = Optional(block)
        append(&block)
    }

    /// Moves `block` to the end, without retaining it in between; nil is ignored.
    mutating func append(_ block: inout PerformedBlock?) {
        if end == capacity { makeRoom() }
        guard let base, block?.run != nil else { return }
        (base + end).initialize(to: block.take().unsafelyUnwrapped)
        end += 1
    }

    mutating func popFirst() -> PerformedBlock? {
        guard first < end, let base else { return nil }
        let block = (base + first).move()
        first += 1
        if first == end { (first, end) = (0, 0) }
        return block
    }

    /// Frees memory that a burst has used. The queue must be empty.
    mutating func shrink() {
        guard capacity > Self.retainedCapacity else { return }
        base?.deallocate()
        (base, capacity) = (nil, 0)
    }

    private mutating func makeRoom() {
        let count = end - first
        let larger = max(Self.smallestCapacity, 2 * count)
        let room = UnsafeMutablePointer<PerformedBlock>.allocate(capacity: larger)
        if let base {
            room.moveInitialize(from: base + first, count: count)
            base.deallocate()
        }
        (base, capacity, first, end) = (room, larger, 0, count)
    }
}
