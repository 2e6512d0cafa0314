/// Blocks that wait for a mode, in the order in which they were performed.
///
/// Each mode has a queue, and so has the common name, so that what waits for other modes costs a pass
/// nothing. A block for several modes stands in the queue of each as one shared box; whichever mode runs
/// first takes it, and it leaves the other queues then. Guarded by the lock of the loop.
struct BlockQueue {
    /// A block that stands in more than one queue.
    ///
    /// `@unchecked Sendable`: it is touched only under the lock of the loop that holds it.
    final class Shared: @unchecked Sendable {
        var block: PerformedBlock?
        let queues: [BlockQueueName]

        init(_ block: PerformedBlock, in queues: [BlockQueueName]) {
            self.block = block
            self.queues = queues
        }
    }

    private enum Content {
        case own(PerformedBlock)
        case shared(Shared)
    }

    private struct Entry {
        let sequence: UInt64
        let content: Content
    }

    /// How many entries' room is kept for the next blocks, so that one at a time allocates nothing; what a
    /// burst has taken beyond it is given back.
    static let keptCapacity = 1024

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ block: PerformedBlock, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, content: .own(block)))
    }

    mutating func append(_ shared: Shared, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, content: .shared(shared)))
    }

    mutating func remove(_ shared: Shared) {
        entries.removeAll { if case .shared(shared) = $0.content { true } else { false } }
    }

    /// Moves everything in this queue and `common` to the end of `blocks`, in order.
    ///
    /// - Returns: What was shared, so that the caller can take it out of the other queues.
    mutating func takeAll(
        with common: inout BlockQueue, into blocks: inout [PerformedBlock]
    ) -> [Shared] {
        if !common.entries.isEmpty {
            let isMerged = !entries.isEmpty
            entries += common.entries
            common.entries.removeAll(keepingCapacity: common.entries.capacity <= Self.keptCapacity)
            if isMerged { entries.sort { $0.sequence < $1.sequence } }
        }
        var shared: [Shared] = []
        for entry in entries {
            switch entry.content {
            case .own(let block): blocks.append(block)
            case .shared(let box):
                // A box stands twice where its modes include both the running one and the common name.
                guard let block = box.block else { continue }
                box.block = nil
                shared.append(box)
                blocks.append(block)
            }
        }
        entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacity)
        return shared
    }

    mutating func removeAll() -> [PerformedBlock] {
        var none = BlockQueue()
        var blocks: [PerformedBlock] = []
        _ = takeAll(with: &none, into: &blocks)
        return blocks
    }
}

private func ~= (pattern: BlockQueue.Shared, value: BlockQueue.Shared) -> Bool { pattern === value }

/// The queue of a mode, or that of the common name.
enum BlockQueueName: Hashable {
    case mode(Int)
    case common
}

/// A block on its way to the loop's thread.
///
/// `@unchecked Sendable`: the block was handed over by `sending`, so nobody else has kept a way to what it
/// captures; it is run once, on the loop's thread, or released unrun.
struct PerformedBlock: @unchecked Sendable {
    let run: () -> Void
}
