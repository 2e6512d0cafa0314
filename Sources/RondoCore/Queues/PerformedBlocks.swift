/// A block on its way to the loop's thread.
///
/// `@unchecked Sendable`: the block was handed over by `sending`, so nobody else has kept a way to what it
/// captures; it is run once, on the loop's thread, or released unrun.
struct PerformedBlock: @unchecked Sendable {
    let run: () -> Void
}

/// Blocks in a row: put in at the end, taken out at the front.
///
/// An array would count one more reference to a block while it is called, and that means to fetch memory once
/// more from the processor of the thread that performed it.
///
/// `@unchecked Sendable`: it owns its memory, and cannot be copied.
struct PerformedBlocks: ~Copyable, @unchecked Sendable {
    /// How many blocks' room is kept for the next ones, so that one at a time allocates nothing; what a burst has
    /// taken beyond it is given back.
    static let keptCapacity = 1024
    private static let smallestCapacity = 16

    /// Owned; the places from `first` up to `end` hold blocks.
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

    mutating func append(_ block: PerformedBlock) {
        var block = Optional(block)
        append(&block)
    }

    /// Takes `block` over, without a reference more in between; nil is none.
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

    /// Gives back what a burst has taken. They must be empty.
    mutating func shrink() {
        guard capacity > Self.keptCapacity else { return }
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
