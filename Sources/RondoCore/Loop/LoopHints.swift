// Work that few loops ever have. A pass checks one word for it, and takes no lock if there is none.

/// The kinds of such work that wait on a loop, in any mode.
struct PendingWork: OptionSet {
    let rawValue: UInt8

    /// Notifications to be posted as soon as possible.
    static let notifications = PendingWork(rawValue: 1)
    /// Notifications for an idle loop.
    static let idleNotifications = PendingWork(rawValue: 2)
    /// Closures for the start of a pass; see `RunLoop.perform(order:modes:target:_:)`.
    static let orderedPerforms = PendingWork(rawValue: 4)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    fileprivate init(_ state: borrowing LoopState) {
        self = []
        if let notifications = state.notifications {
            if !notifications.isEmpty(.asap) { insert(.notifications) }
            if !notifications.isEmpty(.whenIdle) { insert(.idleNotifications) }
        }
        if !state.orderedPerforms.isEmpty { insert(.orderedPerforms) }
    }
}

extension RunLoop {
    /// To be called under the lock when such work was added or removed.
    func notePending(_ state: borrowing LoopState) {
        pending.store(PendingWork(state).rawValue, ordering: .relaxed)
    }

    /// Whether `work` may be waiting. On the loop's thread; work from another thread is certainly seen once
    /// that thread has asked for attention.
    func mayHave(_ work: PendingWork) -> Bool {
        pending.load(ordering: .relaxed) & work.rawValue != 0
    }
}
