internal import CEv

// A mode that the kernel has refused something: an epoll set of its own, or a place in it for what ends a sleep. Its
// descriptors, and those of its loop, are looked at by `poll(2)`, which needs nothing of the kernel, so that timers,
// blocks and timeouts come in time on a full machine too.
extension ModeLoop {
    /// Milliseconds that a loop sleeps at most which other threads cannot wake, since descriptors had run out for that.
    static let longestSleepUnwakeable: Int64 = 10
    /// Milliseconds that it sleeps at most otherwise, before it asks for what it lacks again.
    static let longestSleepBare: Int64 = 1_000

    /// - Parameter end: When the sleep ends; nil: there is none.
    func pollBare(until end: LoopInstant?) {
        if !isWhole {
            askForWhatIsLacking()
            if isWhole { return }
        }
        var requests: [pollfd] = []
        var polled: [WatcherPointer] = []
        func add(_ descriptor: Int32, _ watcher: WatcherPointer, events: Int32) {
            requests.append(pollfd(descriptor, events: events))
            polled.append(watcher)
        }
        if let wakeUp {
            add(wakeUp.eventDescriptor, wakeUpWatcher, events: Int32(EV_READ))
            add(wakeUp.timerDescriptor, timerWatcher, events: Int32(EV_READ))
        }
        if watchesMainQueue, let descriptor = MainQueue.descriptor {
            add(descriptor, mainQueueWatcher, events: Int32(EV_READ))
        }
        if loop != nil {
            requests.append(pollfd(setDescriptor, events: Int32(EV_READ)))
        } else {
            for watcher in watchers.values where watcher.pointee.isStarted {
                add(watcher.pointee.io.fd, watcher, events: watcher.pointee.events)
            }
        }
        guard CEv.poll(&requests, nfds_t(requests.count), milliseconds(until: end)) != -1 else {
            // Memory has run out, or there are more than the limit allows. (Or a signal has come.)
            if end != nil { SystemFailure.rest() }
            return
        }
        for (request, watcher) in zip(requests, polled) where request.revents != 0 {
            if watcher.pointee.source != nil, Int32(request.revents) & POLLNVAL != 0 {
                stopRefused(watcher, code: EBADF)
            } else {
                report(watcher, events: request.foundEvents)
            }
        }
        if loop != nil { lookAtOnce() }
    }

    private func milliseconds(until end: LoopInstant?) -> Int32 {
        guard let end else { return 0 }
        let longest = wakeUp == nil ? Self.longestSleepUnwakeable : Self.longestSleepBare
        guard end != .never else { return Int32(longest) }
        // Rounded up, or the last part of a millisecond would be waited for at full speed.
        let nanoseconds = max(
            0, end.nanoseconds.subtractingReportingOverflow(LoopClock.machineNow.nanoseconds).partialValue)
        return Int32(min(longest, nanoseconds / 1_000_000 + 1))
    }
}
