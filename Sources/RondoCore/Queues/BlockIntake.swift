internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The blocks performed since the loop's last block point, all for one mode.
///
/// The intake has a lock of its own, which is held only for a push and for an exchange of buffers, so that a
/// thread that performs many blocks and the loop that runs them hardly contend. Nearly always all blocks are
/// for the running mode, which takes them directly from here. Otherwise they are moved to the queues of their
/// modes: by the loop at a block point, or by a thread that performs a block for another mode. (The loop's
/// lock is taken before this one.)
///
/// The intake compares the names of modes, which are their raw values, and knows nothing else about modes.
final class BlockIntake: Sendable {
    private struct State: ~Copyable, Sendable {
        /// False once the loop's thread has ended.
        var isOpen = true
        /// The blocks' mode, by its name and by its queue.
        var mode: String?
        var queue: BlockQueueName?
        var blocks = PerformedBlocks()
        /// A block has asked for the loop's attention, and the loop has not looked since then.
        var hasAsked = false

        func isFor(_ mode: Int, isCommon: Bool) -> Bool {
            switch queue {
            case .mode(let index): index == mode
            case .common: isCommon
            case nil: false
            }
        }
    }

    enum Outcome {
        case refused
        /// The block was not taken: the intake holds blocks for another mode.
        case isForOtherMode
        /// - Parameters:
        ///   - isFirstToAsk: The block has asked for the loop's attention, and no other block has since the
        ///     loop last looked.
        ///   - mustWake: The caller has to call `wake()` on the loop's `WakeUp`.
        case taken(isFirstToAsk: Bool, mustWake: Bool)
    }

    private let attention: Attention
    private let state = Mutex(State())
    /// The value of `!state.blocks.isEmpty`, written under the lock.
    private let isFilled = Atomic(false)

    init(_ attention: Attention) {
        self.attention = attention
    }

    /// Whether there are no blocks. A loop that looks because of a block's request for attention sees that
    /// block here.
    var isEmpty: Bool { !isFilled.load(ordering: .acquiring) }

    // MARK: Any thread

    /// Takes `block` if the intake's blocks are for `mode` as well.
    ///
    /// - Parameter waking: Whether the block asks for attention, unless another block has done so.
    // Inlined: without, bench-guard's block.performed takes 6 % more instructions.
    @inline(__always)
    func push(_ block: inout PerformedBlock?, mode: String, waking: Bool) -> Outcome {
        state.withLock { state in
            guard state.isOpen else { return .refused }
            guard state.queue != nil, state.mode == mode else { return .isForOtherMode }
            return push(&block, waking: waking, &state)
        }
    }

    /// Takes `block`. If the intake's blocks are for another mode, first hands them to `receive`, in order.
    /// Called under the loop's lock.
    func push(
        _ block: inout PerformedBlock?, mode: String, queue: BlockQueueName, waking: Bool,
        emptyingInto receive: (PerformedBlock, BlockQueueName) -> Void
    ) -> Outcome {
        state.withLock { state in
            guard state.isOpen else { return .refused }
            if state.queue != queue {
                empty(&state, into: receive)
                (state.mode, state.queue) = (mode, queue)
            }
            return push(&block, waking: waking, &state)
        }
    }

    // Inlined: without, bench-guard's block.performed takes 8 % more instructions.
    @inline(__always)
    private func push(_ block: inout PerformedBlock?, waking: Bool, _ state: inout State) -> Outcome {
        if state.blocks.isEmpty { isFilled.store(true, ordering: .releasing) }
        state.blocks.append(&block)
        guard waking, !state.hasAsked else { return .taken(isFirstToAsk: false, mustWake: false) }
        state.hasAsked = true
        // Still under the lock: once the loop has taken the block, there must be no request for attention
        // because of it.
        return .taken(isFirstToAsk: true, mustWake: attention.ask())
    }

    // MARK: On the loop's thread

    /// Waits for less than a microsecond, before the loop looks for blocks again.
    ///
    /// Where several have come at once, a thread performs one after the other, and a loop that looks at once
    /// gets them one or two at a time: each look takes the intake out of the cache of that thread's
    /// processor. Worth three quarters of the time of W2's million blocks, and of their CPU time. (Between
    /// processors that exchange memory four times as slowly it makes no difference.)
    func pauseForMoreBlocks() {
        for _ in 0..<16 { rondo_pause() }
    }

    // MARK: Under the lock of the loop

    /// Hands out all blocks, in order.
    func empty(into receive: (PerformedBlock, BlockQueueName) -> Void) {
        guard !isEmpty else { return }
        state.withLock { empty(&$0, into: receive) }
    }

    /// Exchanges the intake's blocks for the empty `blocks`, if they are for `mode`.
    ///
    /// - Parameter isCommon: Whether `mode` is a common mode.
    /// - Returns: False if the intake holds blocks for another mode.
    func exchange(for mode: Int, isCommon: Bool, _ blocks: inout PerformedBlocks) -> Bool {
        state.withLock { state in
            guard state.isFor(mode, isCommon: isCommon) else { return state.blocks.isEmpty }
            swap(&state.blocks, &blocks)
            noteEmptied(&state)
            return true
        }
    }

    /// Whether there are blocks for `mode`.
    func holdsBlocks(for mode: Int, isCommon: Bool) -> Bool {
        guard !isEmpty else { return false }
        return state.withLock { !$0.blocks.isEmpty && $0.isFor(mode, isCommon: isCommon) }
    }

    /// Refuses all further blocks.
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
