package import RondoCore

/// Where a stream is told of its events: modes of loops, or a dispatch queue; and where it waits for a turn.
///
/// A value; nearly every stream is in one mode of one loop, so that place needs no array.
package struct StreamSchedule {
    private struct Entry {
        let courier: SharedQueue
        /// A turn was asked for and has not come.
        var isWaiting = false

        func isAt(_ place: ScheduledMode) -> Bool {
            courier.loop === place.loop && courier.mode == place.mode
        }

        func isWith(_ other: SharedQueue) -> Bool {
            courier === other || courier.loop === other.loop && courier.mode == other.mode
        }
    }

    /// Whom to ask for turns.
    package enum Turns {
        case none
        case courier(SharedQueue)
        case couriers([SharedQueue])
        case queue(DispatchQueue)

        /// To be called without a lock. A queue is the stream's own affair.
        ///
        /// - Parameter later: The turn may wait until the loop has served what is ready.
        package func ask(for client: any SharedQueueClient, later: Bool = false) {
            switch self {
            case .none, .queue: break
            case .courier(let courier) where later: courier.enqueueDeferred(client)
            case .courier(let courier): courier.enqueue(client)
            case .couriers(let couriers): for courier in couriers { courier.enqueue(client) }
            }
        }
    }

    /// Couriers that were left by the schedule, and have to be told so without a lock.
    package struct Left: Sendable {
        fileprivate var first: SharedQueue?
        fileprivate var others: [SharedQueue] = []

        package func leave() { forEach { $0.leave() } }

        func forEach(_ body: (SharedQueue) -> Void) {
            if let first { body(first) }
            for courier in others { body(courier) }
        }
    }

    /// What few have.
    private enum More {
        case nothing
        case places([Entry])
        /// In place of all others.
        case queue(DispatchQueue)
    }

    // The small ones stand together: that is 16 bytes less for every stream.
    private var first: Entry?
    private var isWaitingOnQueue = false
    /// The owner's: there is something to have a turn for. Here it costs nothing.
    package var isWanted = false
    /// Changes with the schedule.
    private(set) var version: UInt32 = 0
    private var more = More.nothing

    private var others: [Entry] {
        get { if case .places(let others) = more { others } else { [] } }
        set {
            if !newValue.isEmpty {
                more = .places(newValue)
            } else if case .places = more {
                more = .nothing
            }
        }
    }

    /// Set when there are no places.
    var queue: DispatchQueue? {
        get { if case .queue(let queue) = more { queue } else { nil } }
        set {
            if let newValue {
                more = .queue(newValue)
            } else if case .queue = more {
                more = .nothing
            }
            isWaitingOnQueue = false
            version &+= 1
        }
    }

    package init() {}

    package var isEmpty: Bool { first == nil && queue == nil }

    /// Nil where there are several, or none.
    var onlyQueue: SharedQueue? { others.isEmpty ? first?.courier : nil }

    var modes: [ScheduledMode] {
        entries.map { ScheduledMode(loop: $0.courier.loop, mode: $0.courier.mode) }
    }

    /// Whether all its couriers have lost their threads.
    package var isLost: Bool {
        guard let first else { return false }
        return first.courier.hasLoopEnded && others.allSatisfy { $0.courier.hasLoopEnded }
    }

    private var entries: [Entry] { (first.map { [$0] } ?? []) + others }

    func contains(_ place: ScheduledMode) -> Bool {
        first?.isAt(place) ?? false || others.contains { $0.isAt(place) }
    }

    /// Whether one is there already that serves where `courier` does.
    func contains(_ courier: SharedQueue) -> Bool {
        first?.isWith(courier) ?? false || others.contains { $0.isWith(courier) }
    }

    package mutating func insert(_ courier: SharedQueue) {
        queue = nil
        if first == nil { first = Entry(courier: courier) } else { others.append(Entry(courier: courier)) }
    }

    // What leaves a place wants no turn there any more: what was asked for is withdrawn. That has to be done by the
    // lock under which turns are asked for.

    /// - Returns: The courier to be left; nil: there was no such place.
    mutating func remove(_ place: ScheduledMode, of client: any SharedQueueClient) -> SharedQueue? {
        let removed: Entry
        if let entry = first, entry.isAt(place) {
            first = others.popLast()
            removed = entry
        } else if let index = others.firstIndex(where: { $0.isAt(place) }) {
            removed = others.remove(at: index)
        } else {
            return nil
        }
        version &+= 1
        if removed.isWaiting { removed.courier.withdraw(client) }
        return removed.courier
    }

    /// - Parameter client: Nil: nobody who could have asked is left.
    package mutating func takeAll(of client: (any SharedQueueClient)?) -> Left {
        if let client {
            if let first, first.isWaiting { first.courier.withdraw(client) }
            for entry in others where entry.isWaiting { entry.courier.withdraw(client) }
        }
        defer {
            first = nil
            others = []
            queue = nil
        }
        return Left(first: first?.courier, others: others.map(\.courier))
    }

    // MARK: Turns

    /// Everybody who has not been asked yet.
    package mutating func turnsToAskFor() -> Turns {
        if let queue {
            defer { isWaitingOnQueue = true }
            return isWaitingOnQueue ? .none : .queue(queue)
        }
        guard !others.isEmpty else {
            guard let entry = first, !entry.isWaiting else { return .none }
            first?.isWaiting = true
            return .courier(entry.courier)
        }
        let asked = entries.filter { !$0.isWaiting }.map(\.courier)
        first?.isWaiting = true
        for index in others.indices { others[index].isWaiting = true }
        return asked.isEmpty ? .none : .couriers(asked)
    }

    /// The turn that was asked for has come to `client`, by one courier: the others need not come for it, or a run in
    /// another mode would end for nothing.
    ///
    /// - Returns: False: the courier's place is not in the schedule.
    package mutating func turnHasCome(by courier: SharedQueue, to client: any SharedQueueClient) -> Bool {
        if others.isEmpty {
            guard first?.courier === courier else { return false }
            first?.isWaiting = false
            return true
        }
        guard entries.contains(where: { $0.courier === courier }) else { return false }
        // Whoever asks again has to come by the lock that is held here: so what is withdrawn was asked for before.
        for entry in entries where entry.isWaiting && entry.courier !== courier {
            entry.courier.withdraw(client)
        }
        first?.isWaiting = false
        for index in others.indices { others[index].isWaiting = false }
        return true
    }

    /// As `turnHasCome(by:to:)`, where a dispatch queue has the turns.
    ///
    /// - Returns: False: the stream has been taken off `queue` since it was asked.
    mutating func turnHasCome(on queue: DispatchQueue) -> Bool {
        guard self.queue === queue else { return false }
        isWaitingOnQueue = false
        return true
    }
}
