extension LoopState {
    var pendingWork: PendingWork {
        var work: PendingWork = []
        if let notifications {
            if !notifications.isEmpty(.asap) { work.insert(.notifications) }
            if !notifications.isEmpty(.whenIdle) { work.insert(.idleNotifications) }
        }
        if !orderedPerforms.isEmpty { work.insert(.orderedPerforms) }
        return work
    }
}
