package import RondoCore

/// The schedule of a client of shared queues (a stream, a channel, a load): the modes of loops in which it is
/// served and the queues in which it waits; for a stream perhaps a dispatch queue in their place.
///
/// A value. Nearly every client is in one mode of one loop, so a single mode needs no array.
package struct ClientSchedule {
    private struct Entry {
        let queue: SharedQueue
        /// True if the client was enqueued, and has not been served yet.
        var isWaiting = false

        var mode: LoopMode { LoopMode(loop: queue.loop, mode: queue.mode) }

        func isIn(_ mode: LoopMode) -> Bool {
            queue.loop === mode.loop && queue.mode == mode.mode
        }

        func serves(asDoes other: SharedQueue) -> Bool {
            queue === other || queue.loop === other.loop && queue.mode == other.mode
        }
    }

    /// The queues in which a client must be enqueued.
    package enum Queues {
        case none
        case one(SharedQueue)
        case several([SharedQueue])
        case dispatch(DispatchQueue)

        /// Whether there is one queue, and the current run of its loop returns after a source.
        var returnAfterSource: Bool {
            if case .one(let queue) = self { queue.loop.returnsAfterSource } else { false }
        }

        /// Enqueues the client; must be called without a lock. For a dispatch queue the client submits
        /// itself.
        ///
        /// - Parameters:
        ///   - deferred: Whether the client may be served after the callbacks of the descriptors that are
        ///     ready now.
        ///   - first: Whether it is served before the others that wait.
        package func enqueue(_ client: any SharedQueueClient, deferred: Bool = false, first: Bool = false) {
            switch self {
            case .none, .dispatch: break
            case .one(let queue) where deferred: queue.enqueueDeferred(client)
            case .one(let queue): queue.enqueue(client, first: first)
            case .several(let queues): for queue in queues { queue.enqueue(client, first: first) }
            }
        }
    }

    /// The queues that are no longer in the schedule; the owner must leave them, without a lock.
    package struct RemovedQueues: Sendable {
        fileprivate var first: SharedQueue?
        fileprivate var others: [SharedQueue] = []

        package func leave() { forEach { $0.leave() } }

        func forEach(_ body: (SharedQueue) -> Void) {
            if let first { body(first) }
            for queue in others { body(queue) }
        }
    }

    /// The schedule beyond its first mode, empty for most clients.
    private enum Remainder {
        case nothing
        case modes([Entry])
        /// Replaces all modes.
        case dispatchQueue(DispatchQueue)
    }

    // The small properties stand together, which saves 16 bytes in every client.
    private var first: Entry?
    private var isWaitingOnDispatchQueue = false
    /// Whether the client has asked to be served. Set by the owner; stored here, where it fits into padding.
    package var isWanted = false
    /// Counts the changes of the schedule.
    private(set) var version: UInt32 = 0
    private var remainder = Remainder.nothing

    private var others: [Entry] {
        get { if case .modes(let others) = remainder { others } else { [] } }
        set {
            if !newValue.isEmpty {
                remainder = .modes(newValue)
            } else if case .modes = remainder {
                remainder = .nothing
            }
        }
    }

    /// Nil while the stream is in modes of loops.
    var dispatchQueue: DispatchQueue? {
        get { if case .dispatchQueue(let queue) = remainder { queue } else { nil } }
        set {
            if let newValue {
                remainder = .dispatchQueue(newValue)
            } else if case .dispatchQueue = remainder {
                remainder = .nothing
            }
            isWaitingOnDispatchQueue = false
            version &+= 1
        }
    }

    package init() {}

    package var isEmpty: Bool { first == nil && dispatchQueue == nil }

    /// Nil if there are several queues, or none.
    var onlyQueue: SharedQueue? { others.isEmpty ? first?.queue : nil }

    var modes: [LoopMode] {
        guard let first else { return [] }
        return others.isEmpty ? [first.mode] : [first.mode] + others.map(\.mode)
    }

    /// The modes in which a run loop serves what is below the stream: its modes, or, with a dispatch queue,
    /// the loader's.
    var servingModes: [LoopMode] { dispatchQueue == nil ? modes : [.loader] }

    /// Whether `mode` is one of `servingModes`.
    func isServed(in mode: LoopMode) -> Bool { dispatchQueue == nil ? contains(mode) : mode == .loader }

    /// Whether the threads of all its loops have ended.
    package var isLost: Bool {
        guard let first else { return false }
        return first.queue.hasLoopEnded && others.allSatisfy { $0.queue.hasLoopEnded }
    }

    private var entries: [Entry] { (first.map { [$0] } ?? []) + others }

    func contains(_ mode: LoopMode) -> Bool {
        first?.isIn(mode) ?? false || others.contains { $0.isIn(mode) }
    }

    /// Whether the schedule already has a queue of the same loop and mode.
    func contains(_ queue: SharedQueue) -> Bool {
        first?.serves(asDoes: queue) ?? false || others.contains { $0.serves(asDoes: queue) }
    }

    package mutating func insert(_ queue: SharedQueue) {
        dispatchQueue = nil
        if first == nil { first = Entry(queue: queue) } else { others.append(Entry(queue: queue)) }
    }

    // A client that leaves a mode is withdrawn from the mode's queue. That must happen under the same lock
    // under which the client is marked as waiting.

    /// - Returns: The queue, which the caller must leave; nil: the schedule does not have the mode.
    mutating func remove(_ mode: LoopMode, of client: any SharedQueueClient) -> SharedQueue? {
        let removed: Entry
        if let entry = first, entry.isIn(mode) {
            first = others.popLast()
            removed = entry
        } else if let index = others.firstIndex(where: { $0.isIn(mode) }) {
            removed = others.remove(at: index)
        } else {
            return nil
        }
        version &+= 1
        if removed.isWaiting { removed.queue.withdraw(client) }
        return removed.queue
    }

    /// Takes out the queues of loops whose threads have ended: a client may be used by many threads that do
    /// not live long.
    ///
    /// - Returns: The queues, which the caller must leave.
    mutating func removeEnded(of client: any SharedQueueClient) -> [SharedQueue] {
        guard first != nil else { return [] }
        let ended = entries.filter(\.queue.hasLoopEnded)
        return ended.compactMap { remove($0.mode, of: client) }
    }

    /// Empties the schedule, and withdraws `client` from the queues that it waits in.
    ///
    /// - Parameter client: Nil in the client's deinit, where it waits nowhere.
    package mutating func takeAll(of client: (any SharedQueueClient)?) -> RemovedQueues {
        if let client {
            if let first, first.isWaiting { first.queue.withdraw(client) }
            for entry in others where entry.isWaiting { entry.queue.withdraw(client) }
        }
        let removed = RemovedQueues(first: first.take()?.queue, others: others.map(\.queue))
        others = []
        dispatchQueue = nil
        return removed
    }

    // MARK: Waiting

    /// Marks the client as waiting.
    ///
    /// - Returns: The queues in which it does not wait yet: the caller must enqueue it there after releasing
    ///   the lock.
    package mutating func startWaiting() -> Queues {
        if let dispatchQueue {
            defer { isWaitingOnDispatchQueue = true }
            return isWaitingOnDispatchQueue ? .none : .dispatch(dispatchQueue)
        }
        guard !others.isEmpty else {
            guard let entry = first, !entry.isWaiting else { return .none }
            first?.isWaiting = true
            return .one(entry.queue)
        }
        let missing = entries.filter { !$0.isWaiting }.map(\.queue)
        first?.isWaiting = true
        for index in others.indices { others[index].isWaiting = true }
        return missing.isEmpty ? .none : .several(missing)
    }

    /// Records that `queue` serves `client`, and withdraws it from the other queues: otherwise a run in
    /// another mode would return for nothing.
    ///
    /// - Returns: False if the queue is not in the schedule.
    package mutating func endWaiting(servedBy queue: SharedQueue, _ client: any SharedQueueClient) -> Bool {
        if others.isEmpty {
            guard first?.queue === queue else { return false }
            first?.isWaiting = false
            return true
        }
        guard entries.contains(where: { $0.queue === queue }) else { return false }
        // The client can be enqueued again only under the lock that is held here, so an entry that is
        // withdrawn was enqueued earlier.
        for entry in entries where entry.isWaiting && entry.queue !== queue {
            entry.queue.withdraw(client)
        }
        first?.isWaiting = false
        for index in others.indices { others[index].isWaiting = false }
        return true
    }

    /// Records that `queue` has taken the client without serving it; in the other queues it waits as before.
    mutating func endWaiting(onlyIn queue: SharedQueue) {
        if first?.queue === queue { first?.isWaiting = false }
        for index in others.indices where others[index].queue === queue { others[index].isWaiting = false }
    }

    /// As `endWaiting(servedBy:_:)`, for a client that a dispatch queue serves.
    ///
    /// - Returns: False if the stream was taken off `queue` meanwhile.
    mutating func endWaiting(servedOn queue: DispatchQueue) -> Bool {
        guard dispatchQueue === queue else { return false }
        isWaitingOnDispatchQueue = false
        return true
    }
}
