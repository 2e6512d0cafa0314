// Notifications of `NotificationQueue`: posted at the end of a pass and of a run, or before the loop sleeps.
extension Pass {
    /// Whether notifications wait that this mode posts at the end of the pass.
    var hasNotifications: Bool { loop.mayHave(.notifications) && has(.asap) }

    /// Whether notifications wait for this loop to be idle in this mode.
    var hasIdleNotifications: Bool { loop.mayHave(.idleNotifications) && has(.whenIdle) }

    private func has(_ style: QueuedNotifications.Style) -> Bool {
        loop.state.withLock { [mode] state in
            state.notifications?.has(
                style, in: state.modes[mode].name.rawValue, isCommon: state.modes[mode].isCommon) ?? false
        }
    }

    /// Posts the notifications of `style` that wait now. Those that an observer enqueues wait for the next
    /// occasion (rule NQ-17). One is taken at a time, so that a run nested in an observer posts the rest, and
    /// what an observer takes out of a queue is not posted (rule NQ-18).
    ///
    /// - Returns: Whether any was posted.
    @inline(never)
    @discardableResult
    func postNotifications(_ style: QueuedNotifications.Style) -> Bool {
        let last = loop.state.withLock { $0.notifications?.lastNumber ?? 0 }
        var posted: UInt64 = 0
        while let entry = takeNotification(style, after: posted, upTo: last) {
            posted = entry.number
            Trace.callOut(
                loop, mode, .notification(entry.notification.name.rawValue), label: entry.label,
                of: entry.notification.object.flatMap { type(of: $0) is AnyClass ? $0 as AnyObject : nil }
            ) { entry.center.post(entry.notification) }
        }
        return posted > 0
    }

    private func takeNotification(
        _ style: QueuedNotifications.Style, after first: UInt64, upTo last: UInt64
    ) -> QueuedNotifications.Entry? {
        loop.state.withLock { [mode, loop] state in
            let entry = state.notifications?.take(
                style, in: state.modes[mode].name.rawValue, isCommon: state.modes[mode].isCommon,
                after: first,
                upTo: last)
            if entry != nil { loop.notePending(state) }
            return entry
        }
    }

    /// Posts the notifications for an idle loop, if it is idle: a look at the kernel has found nothing, and
    /// nothing else waits in the mode. The caller does not sleep then, but begins a new pass, for which the
    /// observers may have made work (rule NQ-7).
    func postIdleNotifications() {
        guard modeLoop.ready.isEmpty, !modeLoop.mainQueue.isReady, !loop.attention.wasAsked else { return }
        let isIdle = loop.state.withLock { [mode, loop] state in
            !state.isStopped && !state.hasWork(for: mode)
                && !loop.intake.holdsBlocks(for: mode, isCommon: state.modes[mode].isCommon)
        }
        if isIdle { postNotifications(.whenIdle) }
    }
}
