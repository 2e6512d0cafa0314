internal import CRondoEv

// A mode that the kernel has refused an epoll set, or to add the loop's own descriptors to it. It looks at
// its descriptors, and at those of its loop, by `poll(2)`, which needs no kernel object, so that timers,
// blocks and timeouts come in time on a machine without free descriptors too.
extension ModeLoop {
    /// The longest sleep, in milliseconds, of a loop that has no eventfd by which other threads could wake
    /// it.
    static let longestSleepUnwakeable: Int64 = 10
    /// The longest sleep otherwise, in milliseconds: then the loop asks the kernel again for what it has
    /// refused.
    static let longestSleepBare: Int64 = 1_000

    /// - Parameter end: When the sleep ends at the latest; nil: it does not sleep.
    func pollBare(until end: LoopInstant?) {
        if !isWhole {
            askForWhatIsLacking()
            // As in `Sleep`, that look may have read the eventfd.
            if isWhole || end != nil && wasAskedForAttention { return }
        }
        var list = PollList()
        if let wakeUp {
            list.add(wakeUp.eventDescriptor, wakeUpWatcher, events: Int32(EV_READ))
            list.add(wakeUp.timerDescriptor, timerWatcher, events: Int32(EV_READ))
        }
        if mainQueue.way == .byDescriptor, let descriptor = MainQueue.descriptor {
            list.add(descriptor, mainQueueWatcher, events: Int32(EV_READ))
        }
        if loop != nil {
            // libev says below which of its descriptors are ready.
            list.add(setDescriptor, nil, events: Int32(EV_READ))
        } else {
            for watcher in watchers.values where watcher.pointee.isStarted {
                list.add(watcher.pointee.io.fd, watcher, events: watcher.pointee.events)
            }
        }
        guard
            list.poll(until: end, atMost: wakeUp == nil ? Self.longestSleepUnwakeable : Self.longestSleepBare)
        else {
            if end != nil { SystemFailure.rest() }
            return
        }
        list.forEachFound { watcher, request in
            if watcher.pointee.source != nil, Int32(request.revents) & POLLNVAL != 0 {
                stopRefused(watcher, code: EBADF)
            } else {
                report(watcher, events: request.foundEvents)
            }
        }
        if loop != nil { lookAtOnce() }
    }
}
