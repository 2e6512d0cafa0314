/// Blocks that wait for a mode, in the order in which they were performed. They come from `BlockIntake`.
///
/// Each mode has a queue, and so has the common name, so that blocks for other modes cost a pass nothing. A
/// block for several modes is in the queue of each, as one shared box; the mode that runs first takes the
/// block, which is then removed from the other queues. Guarded by the loop's lock.
struct BlockQueue {
    /// A block that is in more than one queue.
    ///
    /// `@unchecked Sendable`: it is touched only under the lock of the loop that holds it.
    final class Shared: @unchecked Sendable {
        fileprivate(set) var block: PerformedBlock?
        let queues: Set<BlockQueueName>

        init(_ block: PerformedBlock, in queues: Set<BlockQueueName>) {
            self.block = block
            self.queues = queues
        }
    }

    struct Entry {
        fileprivate let sequence: UInt64
        /// Nil if the block is also in other queues; `shared` holds it then.
        fileprivate let own: PerformedBlock?
        fileprivate let shared: Shared?

        /// Whether the block was taken from another queue.
        fileprivate var isTaken: Bool { shared.map { $0.block == nil } ?? false }
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ block: PerformedBlock, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, own: block, shared: nil))
    }

    mutating func append(_ shared: Shared, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, own: nil, shared: shared))
    }

    /// Removes the blocks that were taken from other queues.
    mutating func removeTaken() { entries.removeAll(where: \.isTaken) }

    /// Moves everything in this queue and `common` to the end of `taken`, in order.
    ///
    /// - Returns: The queues of the shared blocks among them, for the caller to call `removeTaken()` of each.
    ///   Once for all blocks: under the loop's lock, the time must not grow by their square.
    mutating func takeAll(
        with common: inout BlockQueue, into taken: inout PerformedBlocks
    ) -> Set<BlockQueueName> {
        var all = entries + common.entries
        if !entries.isEmpty, !common.entries.isEmpty { all.sort { $0.sequence < $1.sequence } }
        self = BlockQueue()
        common = BlockQueue()
        var others: Set<BlockQueueName> = []
        for entry in all {
            if let block = entry.own {
                taken.append(block)
            } else if let box = entry.shared, let block = box.block.take() {
                // (A box is in `all` twice if its modes include both the running one and the common name.)
                others.formUnion(box.queues)
                taken.append(block)
            }
        }
        return others
    }

    mutating func removeAll(into taken: inout PerformedBlocks) {
        var none = BlockQueue()
        _ = takeAll(with: &none, into: &taken)
    }
}

/// The name of a block queue: a mode's, or that of the common name.
enum BlockQueueName: Hashable {
    case mode(Int)
    case common
}
