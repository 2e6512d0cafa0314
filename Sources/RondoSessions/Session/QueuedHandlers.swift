internal import RondoConnections

/// Calls handlers of the program outside the calls of a load: one at a time and in order, on the queue of a
/// schedule, even if it runs several operations at once (rule US-19), or in passes of its loop.
struct QueuedHandlers: Sendable {
    private let schedule: SessionSchedule
    private let calls = QueuedCalls()

    init(_ schedule: SessionSchedule) { self.schedule = schedule }

    /// Calls them as `SessionSchedule.perform` does, after those that were added before.
    func call(_ handlers: [@Sendable () -> Void]) {
        guard let queue = schedule.queue else { return handlers.forEach { schedule.perform($0) } }
        for handler in handlers {
            // That of an upgrade, because it carries a function. Its name is for traces, in which it does not
            // appear.
            let call = DelegateCall.upgraded(name: "handler", size: 0, handler)
            _ = calls.add(call, to: queue, mayBeDeferred: false) { call in
                if case .upgraded(_, _, let handler) = call { handler() }
            }
        }
    }

    /// Lets handlers wait for the queue until `release()`. Those of a loop do not wait: it makes one call at
    /// a time.
    func hold() { calls.setSuspended(true) }
    func release() { calls.setSuspended(false) }
}
