internal import CRondoEv

// The translation between libev's `EV_READ | EV_WRITE` and the events of `poll(2)`.
extension pollfd {
    init(_ descriptor: Int32, events: Int32) {
        self.init(fd: descriptor, events: 0, revents: 0)
        if events & Int32(EV_READ) != 0 { self.events |= Int16(POLLIN) }
        if events & Int32(EV_WRITE) != 0 { self.events |= Int16(POLLOUT) }
    }

    /// The events that `poll` has found. A descriptor that is closed or broken counts as ready for
    /// everything, so that its owner finds the error.
    var foundEvents: Int32 {
        let isBroken = revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
        var found: Int32 = 0
        if isBroken || revents & Int16(POLLIN) != 0 { found |= Int32(EV_READ) }
        if isBroken || revents & Int16(POLLOUT) != 0 { found |= Int32(EV_WRITE) }
        return found
    }
}

/// Descriptors to ask `poll(2)` about, each with its watcher.
struct PollList {
    private var requests: [pollfd] = []
    private var watchers: [WatcherPointer?] = []

    mutating func add(_ descriptor: Int32, _ watcher: WatcherPointer?, events: Int32) {
        requests.append(pollfd(descriptor, events: events))
        watchers.append(watcher)
    }

    /// Sleeps until a descriptor is ready or `end` has come.
    ///
    /// - Parameters:
    ///   - end: Nil if the call must not sleep.
    ///   - longest: The longest sleep, in milliseconds.
    /// - Returns: False if the call failed: memory has run out, there are more descriptors than the limit
    ///   allows, or a signal has arrived.
    mutating func poll(until end: LoopInstant?, atMost longest: Int64) -> Bool {
        let milliseconds = end.map { min(longest, Self.milliseconds(until: $0)) } ?? 0
        return CRondoEv.poll(&requests, nfds_t(requests.count), Int32(milliseconds)) != -1
    }

    /// Rounded up: otherwise the loop would spin for the last part of a millisecond.
    private static func milliseconds(until end: LoopInstant) -> Int64 {
        guard end != .never else { return .max }
        let (nanoseconds, overflows) = end.nanoseconds
            .subtractingReportingOverflow(LoopClock.systemNow.nanoseconds)
        return overflows || nanoseconds < 0 ? 1 : nanoseconds / 1_000_000 + 1
    }

    /// Calls `body` for each descriptor that has a watcher and was found ready.
    func forEachFound(_ body: (WatcherPointer, pollfd) -> Void) {
        for (request, watcher) in zip(requests, watchers) where request.revents != 0 {
            if let watcher { body(watcher, request) }
        }
    }
}
