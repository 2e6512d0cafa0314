internal import RondoMutex

/// A queue of notifications that the run loop of the thread that made the queue posts later: as soon as the
/// present callback has returned, or when the loop has nothing else to do. Several notifications that mean
/// the same can be posted as one.
///
/// This class replaces Foundation's class of the same name, whose notifications wait for Foundation's own run
/// loop. A queue posts on the thread that made it, while that thread's loop runs in one of the modes for
/// which a notification was enqueued (rules NQ-1 to NQ-22). A waiting notification does not keep a mode from
/// being empty; it is dropped when the thread ends or the queue is released.
///
/// `@unchecked Sendable` because the class is open: its own properties are immutable or behind a lock. A
/// subclass has to protect its own.
open class NotificationQueue: NSObject, @unchecked Sendable {
    /// The occasion on which a notification is posted: `.asap`, `.whenIdle` or `.now`.
    public typealias PostingStyle = Foundation.NotificationQueue.PostingStyle
    /// The properties by which a new notification replaces those that wait.
    public typealias NotificationCoalescing = Foundation.NotificationQueue.NotificationCoalescing

    private let notificationCenter: NotificationCenter
    private let loop: RunLoop
    private let name = Mutex<String?>(nil)

    /// The calling thread's own queue, over `NotificationCenter.default`, made on first use.
    @available(*, noasync, message: "A task has no thread of its own; use a queue of the loop that you mean.")
    open class var `default`: NotificationQueue { RunLoop.currentLoop().defaultNotificationQueue }

    /// A further queue of the calling thread.
    ///
    /// - Parameter notificationCenter: The centre that posts the queue's notifications.
    @available(
        *, noasync, message: "A task has no thread of its own; make the queue on that of the loop you mean."
    )
    public init(notificationCenter: NotificationCenter) {
        self.notificationCenter = notificationCenter
        loop = RunLoop.currentLoop()
    }

    deinit {
        let queue = ObjectIdentifier(self)
        remove { $0.removeAll { $0.queue == queue } }
    }

    /// A name for logs and traces; nil at first. Any thread may set it; it applies to notifications enqueued
    /// from then on.
    public var label: String? {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }

    /// Enqueues `notification` for the default mode; it replaces waiting ones with the same name and sender
    /// (rule NQ-15).
    open func enqueue(_ notification: Notification, postingStyle: PostingStyle) {
        enqueue(notification, postingStyle: postingStyle, coalesceMask: [.onName, .onSender], forModes: nil)
    }

    /// Enqueues `notification` and, unless the style is `.now`, returns before it is posted.
    ///
    /// - Parameters:
    ///   - postingStyle: `.asap`: at the end of the pass, when the present callback has returned.
    ///     `.whenIdle`: when the loop is about to sleep, and nothing is ready or due. `.now`: before this
    ///     returns; if the loop runs in none of `modes`, the notification is dropped with a warning.
    ///   - coalesceMask: Waiting notifications, of either style, that match in all properties named here are
    ///     removed; this one goes to the end.
    ///   - modes: The loop posts the notification while it runs in one of these; nil: the default mode.
    ///     `.common` stands for every common mode. With an empty array the notification is dropped with a
    ///     warning.
    /// - Note: A call from another thread hands the notification over and wakes a sleeping loop; `.now` then
    ///   means `.asap` (rule NQ-20).
    open func enqueue(
        _ notification: Notification, postingStyle: PostingStyle, coalesceMask: NotificationCoalescing,
        forModes modes: [RunLoop.Mode]?
    ) {
        let modes = modes ?? [.default]
        guard !modes.isEmpty else {
            Log.core.warning(
                """
                The notification \(notification.name.rawValue) was enqueued for no mode at all, and is dropped: name \
                a mode, or pass nil for the default mode.
                """)
            return
        }
        if !coalesceMask.isEmpty { dequeueNotifications(matching: notification, coalesceMask: coalesceMask) }
        switch postingStyle {
        case .now where loop.isCurrent: postNow(notification, modes)
        case .asap, .now: enqueue(notification, .asap, modes)
        case .whenIdle: enqueue(notification, .whenIdle, modes)
        }
    }

    /// Removes the waiting notifications that match `notification` in all properties named by `coalesceMask`;
    /// with an empty mask, none (rule NQ-16). Any thread.
    open func dequeueNotifications(matching notification: Notification, coalesceMask: NotificationCoalescing)
    {
        let queue = ObjectIdentifier(self)
        remove {
            $0.removeAll(
                of: queue, like: notification, inName: coalesceMask.contains(.onName),
                inSender: coalesceMask.contains(.onSender))
        }
    }

    /// Why `notification` has not been posted. If several with its name and sender wait, the answer is for
    /// the one enqueued last. Any thread.
    public func whyNotDelivering(notification: Notification) -> DeliveryObstacle {
        let queue = ObjectIdentifier(self)
        let found = loop.state.withLock { state in
            state.notifications?.last { $0.queue == queue && $0.isSame(as: notification) }
        }
        guard let found else {
            if !loop.isAlive { return DeliveryObstacle.threadEnded }
            return DeliveryObstacle(
                reason: .notScheduled,
                description: "it does not wait in this queue: it was posted, dequeued, coalesced or dropped")
        }
        let obstacle = DeliveryObstacle(modes: found.entry.modes.map { (loop, RunLoop.Mode($0)) })
        guard obstacle.reason == .busy else { return obstacle }
        let occasion =
            found.style == .asap ? "at the end of the pass" : "when the loop has nothing else to do"
        return DeliveryObstacle(
            reason: .busy, description: "\(obstacle.description); it is posted \(occasion)")
    }

    private func postNow(_ notification: Notification, _ modes: [RunLoop.Mode]) {
        let other = loop.state.withLock { state -> RunLoop.Mode? in
            guard let running = state.activations.last.map({ state.modes[$0.mode] }) else { return nil }
            let isOneOf = modes.contains { $0 == running.name || running.isCommon && $0 == .common }
            return isOneOf ? nil : running.name
        }
        guard let other else { return notificationCenter.post(notification) }
        Log.core.warning(
            """
            The notification \(notification.name.rawValue) was to be posted now in \
            \(modes.map(\.shortName).joined(separator: ", ")), and is dropped: its loop runs in \(other.shortName).
            """)
    }

    /// A loop whose thread has ended ignores the notification.
    private func enqueue(
        _ notification: Notification, _ style: QueuedNotifications.Style, _ modes: [RunLoop.Mode]
    ) {
        let entry = QueuedNotifications.Entry(
            queue: ObjectIdentifier(self), label: label, center: notificationCenter,
            notification: notification, modes: modes.map(\.rawValue))
        let isAlive = loop.state.withLock { [loop] state in
            guard state.isAlive else { return false }
            let notifications = state.notifications ?? QueuedNotifications()
            state.notifications = notifications
            notifications.append(entry, style)
            loop.hints.notePending(state.pendingWork)
            return true
        }
        Trace.request(loop, .enqueue, mode: modes.first, label: notification.name.rawValue)
        guard isAlive else { return }
        loop.wakeIfForeign()
        loop.warnUnlessRun()
    }

    /// Removes waiting notifications of this queue.
    private func remove(_ removal: (QueuedNotifications) -> [QueuedNotifications.Entry]) {
        // Removed entries are released after the lock.
        let removed = loop.state.withLock { [loop] state -> [QueuedNotifications.Entry] in
            guard let notifications = state.notifications else { return [] }
            defer { loop.hints.notePending(state.pendingWork) }
            return removal(notifications)
        }
        withExtendedLifetime(removed) {}
    }
}

extension RunLoop {
    /// The queue of this loop's thread over the default centre. Loop's thread only.
    fileprivate var defaultNotificationQueue: NotificationQueue {
        let make = { NotificationQueue(notificationCenter: .default) }
        guard !threadState.isEnding else { return make() }
        return attachment(NotificationQueue.self, orMake: make)
    }
}
