internal import CRondoEv

// A mode for which the kernel has refused an epoll set, or refused to add the loop's own descriptors to it.
// The mode looks at its descriptors, and at those of its loop, by `poll(2)`, which needs no kernel object, so
// that timers, blocks and timeouts are on time even on a machine without free descriptors.
extension ModeLoop {
    /// The longest sleep, in milliseconds, of a loop without an eventfd by which other threads could wake it.
    static let longestSleepUnwakeable: Int64 = 10
    /// The longest sleep otherwise, in milliseconds; after it the loop asks the kernel again for the refused
    /// object.
    static let longestSleepWithoutEpoll: Int64 = 1_000

    /// - Parameter end: The instant at which the sleep ends at the latest; nil if the call must not sleep.
    func pollWithoutEpoll(until end: LoopInstant?) {
        if !hasKernelObjects {
            askKernelForObjects()
            // As in `Sleep`, that look may have read the eventfd.
            if hasKernelObjects || end != nil && wasAskedForAttention { return }
        }
        var list = PollList()
        if let wakeUp {
            list.add(wakeUp.eventDescriptor, wakeUpWatcher, events: Int32(EV_READ))
            list.add(wakeUp.timerDescriptor, timerWatcher, events: Int32(EV_READ))
        }
        if mainQueue.method == .byDescriptor, let descriptor = MainQueue.descriptor {
            list.add(descriptor, mainQueueWatcher, events: Int32(EV_READ))
        }
        if loop != nil {
            // The look by libev at the end finds which of its descriptors are ready.
            list.add(setDescriptor, nil, events: Int32(EV_READ))
        } else {
            for watcher in watchers.values where watcher.pointee.isStarted {
                list.add(watcher.pointee.io.fd, watcher, events: watcher.pointee.events)
            }
        }
        let longestSleep = wakeUp == nil ? Self.longestSleepUnwakeable : Self.longestSleepWithoutEpoll
        guard list.poll(until: end, atMost: longestSleep) else {
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
