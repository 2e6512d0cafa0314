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

    struct Entry {
        fileprivate let sequence: UInt64
        /// Nil: it stands in more queues than this.
        let own: PerformedBlock?
        fileprivate let shared: Shared?
    }

    /// How many entries' room is kept for the next blocks, so that one at a time allocates nothing; what a
    /// burst has taken beyond it is given back.
    static let keptCapacity = 1024

    private var entries: [Entry] = []
    private var sharedCount = 0

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ block: PerformedBlock, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, own: block, shared: nil))
    }

    mutating func append(_ shared: Shared, sequence: UInt64) {
        entries.append(Entry(sequence: sequence, own: nil, shared: shared))
        sharedCount += 1
    }

    mutating func remove(_ shared: Shared) {
        let count = entries.count
        entries.removeAll { $0.shared === shared }
        sharedCount -= count - entries.count
    }

    /// Takes everything in this queue and `common`, in order, and leaves the room of `taken`, which is empty,
    /// for what comes next. Most often that is an exchange of the two, so that whoever performs a block on
    /// another thread does not wait long for the lock.
    ///
    /// - Returns: What was shared, so that the caller can take it out of the other queues.
    mutating func takeAll(with common: inout BlockQueue, into taken: inout [Entry]) -> [Shared] {
        if !common.entries.isEmpty {
            let isMerged = !entries.isEmpty
            entries += common.entries
            common.entries.removeAll(keepingCapacity: common.entries.capacity <= Self.keptCapacity)
            if isMerged { entries.sort { $0.sequence < $1.sequence } }
            sharedCount += common.sharedCount
            common.sharedCount = 0
        }
        swap(&entries, &taken)
        guard sharedCount > 0 else { return [] }
        sharedCount = 0
        var shared: [Shared] = []
        taken = taken.compactMap { entry in
            guard let box = entry.shared else { return entry }
            // A box stands twice where its modes include both the running one and the common name.
            guard let block = box.block else { return nil }
            box.block = nil
            shared.append(box)
            return Entry(sequence: entry.sequence, own: block, shared: nil)
        }
        return shared
    }

    mutating func removeAll() -> [PerformedBlock] {
        var none = BlockQueue()
        var taken: [Entry] = []
        _ = takeAll(with: &none, into: &taken)
        return taken.compactMap(\.own)
    }
}

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
