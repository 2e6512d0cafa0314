package import RondoCore
internal import RondoMutex
internal import RondoStreams

/// A client's registration with the shared queues of the loops and modes that it is scheduled in: while none
/// of these modes runs, nothing of the client is served, and it does nothing. (A channel's sources are
/// registered by `ChannelRegistration`.)
package struct ModeRegistration: ~Copyable, Sendable {
    // Not private: otherwise the compiler could not lay out a registration in another file.
    struct State: Sendable {
        var schedule = ClientSchedule()
        var first: SharedQueue.Registration?
        /// Used if there are several loops or modes.
        var others: [SharedQueue.Registration] = []
    }

    /// The loops and modes in which the client is scheduled; they never change.
    let modes: [LoopMode]
    private let state = Mutex(State())

    package init(_ modes: [LoopMode]) { self.modes = modes }

    /// - Parameter label: The name of the registrations in traces; nil if they share one with others.
    /// - Returns: False if the threads of all loops have ended.
    package func join(as client: any RegisteredClient, label: String?) -> Bool {
        var isLost = false
        for scheduled in modes {
            let registration = SharedQueue.join(scheduled.loop, scheduled.mode, label: label, as: client)
            isLost = state.withLock { state in
                if state.first == nil {
                    state.first = registration
                } else {
                    state.others.append(registration)
                }
                state.schedule.insert(registration.queue)
                return state.schedule.isLost
            }
        }
        return !isLost
    }

    /// Whether the threads of all loops have ended. Any thread may read it.
    var isLost: Bool { state.withLock { $0.schedule.isLost } }

    /// The queues with which the client is registered.
    var queues: ModeQueues {
        state.withLock { state in
            ModeQueues(
                first: state.first?.queue, others: state.others.isEmpty ? [] : state.others.map(\.queue))
        }
    }

    var isJoined: Bool { state.withLock { $0.first != nil } }

    /// Makes `client` be served in a pass of one of the modes. Any thread may call it.
    ///
    /// - Parameter deferred: Whether the pass may come after the callbacks of the descriptors that are ready
    ///   by now.
    package func wakeUp(_ client: any RegisteredClient, deferred: Bool) {
        let queues = state.withLock { state in
            state.schedule.isWanted = true
            return state.schedule.startWaiting()
        }
        queues.enqueue(client, deferred: deferred)
    }

    /// Whether `client` is to be served by `queue` now: it was woken, and no other queue has served it since.
    package func takeWakeUp(by queue: SharedQueue, of client: any RegisteredClient) -> Bool {
        state.withLock { state in
            guard state.schedule.endWaiting(servedBy: queue, client) else { return false }
            defer { state.schedule.isWanted = false }
            return state.schedule.isWanted
        }
    }

    /// Has `shortDelayHasPassed()` of the client called once after a short delay; false if its loops cannot
    /// do that.
    func notifyAfterShortDelay() -> Bool {
        guard modes.count == 1, let first = state.withLock({ $0.first }) else { return false }
        first.notifyAfterShortDelay()
        return true
    }

    package func leave(_ client: any RegisteredClient) {
        let (left, first, others) = state.withLock { state in
            defer { state.others = [] }
            return (state.schedule.takeAll(of: client), state.first.take(), state.others)
        }
        withExtendedLifetime(left) {}
        first?.leave()
        for other in others { other.leave() }
    }
}

/// The shared queues of the modes in which a load is served.
///
/// A value, for which a load in one mode allocates nothing.
struct ModeQueues {
    /// Nil once the load has left its loops.
    let first: SharedQueue?
    /// The queues of further modes and loops.
    let others: [SharedQueue]

    /// The queue of the only loop and mode; nil if there are several, or the load has left.
    var only: SharedQueue? { others.isEmpty ? first : nil }

    func forEach(_ body: (SharedQueue) -> Void) {
        if let first { body(first) }
        for queue in others { body(queue) }
    }
}

extension [LoopMode] {
    /// Whether the calling thread is in a pass of one of these modes.
    var servesCallingThread: Bool {
        // With one mode comparing loops is enough: only that loop's thread can have registered the channel
        // there, and it is still inside this callback.
        if count == 1 { return self[0].loop.isCurrent }
        return contains { scheduled in
            guard scheduled.loop.isCurrent, let mode = scheduled.loop.currentMode else { return false }
            return scheduled.mode == mode
                || scheduled.mode == .common && scheduled.loop.modes(named: .common).contains(mode)
        }
    }
}
