internal import RondoMutex

internal import struct Synchronization.Atomic

/// Where blocks arrive: those that were performed since the loop last came to a block point, all for one mode.
///
/// It has a lock of its own, which is held for a push and for an exchange of buffers, so that a thread that performs
/// one block after the other and the loop that runs them hardly meet. Nearly always all are for the mode that runs,
/// and are run from here; where they are not, they are put into the queues of their modes, by the loop when it
/// comes to a block point and by whoever brings a block for another mode. (The lock of the loop goes before this.)
final class BlockIntake: Sendable {
    private struct State: ~Copyable, Sendable {
        /// The thread of the loop has not ended.
        var isOpen = true
        /// What the blocks are for, by name and as the loop knows it.
        var mode = RunLoop.Mode.default
        var queue: BlockQueueName?
        var blocks = PerformedBlocks()
        /// One of them has asked for the loop's attention, and nobody has looked since.
        var hasAsked = false

        func isFor(_ mode: Int, isCommon: Bool) -> Bool {
            switch queue {
            case .mode(let index): index == mode
            case .common: isCommon
            case nil: false
            }
        }
    }

    enum Answer {
        case refused
        /// It is left to the caller: those here are for another mode.
        case isForOtherMode
        /// - Parameters:
        ///   - isFirstToAsk: It has asked for the loop's attention, and no other since the loop last looked.
        ///   - mustWake: The caller has to write `WakeUp`.
        case taken(isFirstToAsk: Bool, mustWake: Bool)
    }

    private let attention: Attention
    private let state = Mutex(State())
    /// `!state.blocks.isEmpty`, written under the lock.
    private let isFilled = Atomic(false)

    init(_ attention: Attention) {
        self.attention = attention
    }

    /// Whether there are blocks. What a thread pushes and asks attention for, the loop sees here when it looks.
    @inline(__always)
    var isEmpty: Bool { !isFilled.load(ordering: .acquiring) }

    // MARK: Any thread

    /// Takes `block`, if those that are here are for `mode` as well.
    ///
    /// - Parameter waking: Whether it asks for attention, unless another block has.
    func push(_ block: inout PerformedBlock?, mode: RunLoop.Mode, waking: Bool) -> Answer {
        state.withLock { state in
            guard state.isOpen else { return .refused }
            guard state.queue != nil, state.mode == mode else { return .isForOtherMode }
            return push(&block, waking: waking, &state)
        }
    }

    /// Takes `block`, and hands those that are here to `receive`, in order, if they are for another mode. Under the
    /// lock of the loop.
    func push(
        _ block: inout PerformedBlock?, mode: RunLoop.Mode, queue: BlockQueueName, waking: Bool,
        emptyingInto receive: (PerformedBlock, BlockQueueName) -> Void
    ) -> Answer {
        state.withLock { state in
            guard state.isOpen else { return .refused }
            if state.queue != queue {
                empty(&state, into: receive)
                (state.mode, state.queue) = (mode, queue)
            }
            return push(&block, waking: waking, &state)
        }
    }

    @inline(__always)
    private func push(_ block: inout PerformedBlock?, waking: Bool, _ state: inout State) -> Answer {
        if state.blocks.isEmpty { isFilled.store(true, ordering: .releasing) }
        state.blocks.append(&block)
        guard waking, !state.hasAsked else { return .taken(isFirstToAsk: false, mustWake: false) }
        state.hasAsked = true
        // Under the lock: once the loop has taken the block it is not asked any more for its sake.
        return .taken(isFirstToAsk: true, mustWake: attention.ask())
    }

    // MARK: Under the lock of the loop

    /// Hands out all blocks, in order.
    func empty(into receive: (PerformedBlock, BlockQueueName) -> Void) {
        guard !isEmpty else { return }
        state.withLock { empty(&$0, into: receive) }
    }

    /// Exchanges the blocks for `blocks`, which are none, if they are for `mode`.
    ///
    /// - Parameter isCommon: Whether `mode` is a common one.
    /// - Returns: False where they are for another mode.
    func exchange(for mode: Int, isCommon: Bool, _ blocks: inout PerformedBlocks) -> Bool {
        state.withLock { state in
            guard state.isFor(mode, isCommon: isCommon) else { return state.blocks.isEmpty }
            swap(&state.blocks, &blocks)
            noteEmptied(&state)
            return true
        }
    }

    /// Whether there are blocks for `mode`, which may be a common one.
    func holdsBlocks(for mode: Int, isCommon: Bool) -> Bool {
        guard !isEmpty else { return false }
        return state.withLock { !$0.blocks.isEmpty && $0.isFor(mode, isCommon: isCommon) }
    }

    /// No block is taken any more.
    func close() { state.withLock { $0.isOpen = false } }

    private func empty(_ state: inout State, into receive: (PerformedBlock, BlockQueueName) -> Void) {
        if let queue = state.queue {
            while let block = state.blocks.popFirst() { receive(block, queue) }
            state.blocks.shrink()
        }
        noteEmptied(&state)
    }

    private func noteEmptied(_ state: inout State) {
        isFilled.store(false, ordering: .relaxed)
        state.hasAsked = false
    }
}

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
    @inline(__always)
    mutating func append(_ block: inout PerformedBlock?) {
        if end == capacity { makeRoom() }
        guard let base, block?.run != nil else { return }
        (base + end).initialize(to: block.take().unsafelyUnwrapped)
        end += 1
    }

    @inline(__always)
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
