/// The notifications of `NotificationQueue` that one mode of a loop posts: at the end of a pass and of a run,
/// or before the loop sleeps. Loop's thread only.
struct ModeNotifications {
    let loop: RunLoop
    /// The index of the mode.
    let mode: Int

    /// Whether notifications of `style` wait for this mode.
    func has(_ style: QueuedNotifications.Style) -> Bool {
        loop.state.withLock { [mode] state in
            state.notifications?.has(
                style, in: state.modes[mode].name.rawValue, isCommon: state.modes[mode].isCommon) ?? false
        }
    }

    /// Posts the notifications of `style` that wait now. Those that an observer enqueues meanwhile wait for
    /// the next occasion (rule NQ-17). Each is taken just before it is posted, so that a run nested in an
    /// observer posts the rest, and a notification that an observer dequeues is not posted (rule NQ-18).
    ///
    /// - Returns: Whether any was posted.
    @inline(never)
    @discardableResult
    func post(_ style: QueuedNotifications.Style) -> Bool {
        let last = loop.state.withLock { $0.notifications?.lastNumber ?? 0 }
        var posted: UInt64 = 0
        while let entry = take(style, after: posted, upTo: last) {
            posted = entry.number
            Trace.callOut(
                loop, mode, .notification(entry.notification.name.rawValue), label: entry.label,
                of: entry.notification.object.flatMap { type(of: $0) is AnyClass ? $0 as AnyObject : nil }
            ) { entry.center.post(entry.notification) }
        }
        return posted > 0
    }

    private func take(
        _ style: QueuedNotifications.Style, after first: UInt64, upTo last: UInt64
    ) -> QueuedNotifications.Entry? {
        loop.state.withLock { [mode, loop] state in
            let entry = state.notifications?.take(
                style, in: state.modes[mode].name.rawValue, isCommon: state.modes[mode].isCommon,
                after: first,
                upTo: last)
            if entry != nil { loop.hints.notePending(state.pendingWork) }
            return entry
        }
    }
}

extension LoopState {
    /// Whether notifications of either style wait for `mode`.
    func hasNotifications(for mode: Int) -> Bool {
        guard let notifications else { return false }
        let (name, isCommon) = (modes[mode].name.rawValue, modes[mode].isCommon)
        return QueuedNotifications.Style.allCases.contains { style in
            notifications.has(style, in: name, isCommon: isCommon)
        }
    }
}
