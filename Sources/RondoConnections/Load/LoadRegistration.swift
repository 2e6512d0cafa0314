package import RondoCore
internal import RondoMutex
internal import RondoStreams

/// A load's registration with the shared queues of the loops and modes that it is scheduled in.
///
/// `@unchecked Sendable`: `schedule` has a lock; `first` and `others` are used inside the gate of the load only.
package final class LoadRegistration: @unchecked Sendable {
    /// Where the load is scheduled; it does not change.
    let modes: [LoopMode]
    private let schedule = Mutex(StreamSchedule())
    // Unchecked, inside the gate: see `HTTP1Exchange.phase`.
    @exclusivity(unchecked) private var first: SharedQueue.Registration?
    /// Where there are several loops or modes.
    @exclusivity(unchecked) private var others: [SharedQueue.Registration] = []

    package init(_ modes: [LoopMode]) { self.modes = modes }

    /// - Parameter label: What the registrations are called in traces; nil: they share one with others.
    /// - Returns: False if the threads of all loops have ended.
    package func join(as client: any RegisteredClient, label: String?) -> Bool {
        var isLost = false
        for place in modes {
            let registration = SharedQueue.join(place.loop, place.mode, label: label, as: client)
            if first == nil { first = registration } else { others.append(registration) }
            isLost = schedule.withLock { schedule in
                schedule.insert(registration.queue)
                return schedule.isLost
            }
        }
        return !isLost
    }

    /// The threads of all loops have ended. Any thread.
    var isLost: Bool { schedule.withLock { $0.isLost } }

    /// The queue of the only loop and mode; nil: there are several, or the load has left.
    var onlyQueue: SharedQueue? { modes.count == 1 ? first?.queue : nil }

    var isJoined: Bool { first != nil }

    func forEachQueue(_ body: (SharedQueue) -> Void) {
        if let first { body(first.queue) }
        for other in others { body(other.queue) }
    }

    /// Has `client` served in a pass of one of the modes. Any thread.
    ///
    /// - Parameter deferred: The pass may come after the callbacks of the descriptors that are ready by now.
    package func wakeUp(_ client: any RegisteredClient, deferred: Bool) {
        let queues = schedule.withLock { schedule in
            schedule.isWanted = true
            return schedule.startWaiting()
        }
        queues.enqueue(client, deferred: deferred)
    }

    /// Whether `client` is to be served by `queue` now: it was woken, and no other queue was quicker.
    package func takeWakeUp(by queue: SharedQueue, of client: any RegisteredClient) -> Bool {
        schedule.withLock { schedule in
            guard schedule.endWaiting(servedBy: queue, client) else { return false }
            defer { schedule.isWanted = false }
            return schedule.isWanted
        }
    }

    /// Has `client` told once when a short delay has passed; false: its loops cannot tell.
    func notifyAfterShortDelay() -> Bool {
        guard let first, modes.count == 1 else { return false }
        first.notifyAfterShortDelay()
        return true
    }

    package func leave(_ client: any RegisteredClient) { leave(client, idle: nil) }

    /// - Parameter idle: A connection that is registered with the loop still: a load that waits in the queue may use it.
    func leave(_ client: any RegisteredClient, idle: ServerConnection?) {
        let left = schedule.withLock { $0.takeAll(of: client) }
        withExtendedLifetime(left) {}
        if let first = first.take() {
            if let idle {
                let leavesLater = first.queue.hasWaitingClients && first.queue.loop.deferWork(idle)
                if !leavesLater { idle.leave() }
            }
            first.leave()
        }
        for other in others { other.leave() }
        others = []
    }
}
