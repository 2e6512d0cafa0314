private import struct Synchronization.Atomic

// Few loops ever have an observer, a notification or a closure for the start of a pass. A pass checks one
// word for each, and takes the loop's lock only if there may be one.

/// The kinds of work that few loops ever have, in any mode.
struct PendingWork: OptionSet {
    let rawValue: UInt8

    /// Notifications to be posted as soon as possible.
    static let notifications = PendingWork(rawValue: 1)
    /// Notifications for an idle loop.
    static let idleNotifications = PendingWork(rawValue: 2)
    /// Closures for the start of a pass; see `RunLoop.perform(order:modes:target:_:)`.
    static let orderedPerforms = PendingWork(rawValue: 4)

    init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// The part of a loop's state that its passes read without the lock. It is written under the lock.
struct LoopHints: ~Copyable {
    private let observed = Atomic<UInt>(0)
    private let pending = Atomic<UInt8>(0)

    /// To be called when observers were added or removed.
    ///
    /// - Parameter activities: The raw value of `LoopState.observedActivities`.
    func noteObserved(_ activities: UInt) { observed.store(activities, ordering: .relaxed) }

    /// To be called when such work was added or removed, with `LoopState.pendingWork`.
    func notePending(_ work: PendingWork) { pending.store(work.rawValue, ordering: .relaxed) }

    /// Whether one of `activities` may be observed in some mode.
    func mayBeObserved(_ activities: UInt) -> Bool { observed.load(ordering: .relaxed) & activities != 0 }

    /// Whether there may be an observer in some mode.
    var isObserved: Bool { observed.load(ordering: .relaxed) != 0 }

    /// Whether `work` may be waiting. On the loop's thread; work from another thread is certainly seen once
    /// that thread has asked for attention.
    func mayHave(_ work: PendingWork) -> Bool { pending.load(ordering: .relaxed) & work.rawValue != 0 }
}
