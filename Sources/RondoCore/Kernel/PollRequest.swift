internal import CEv

// What libev calls `EV_READ | EV_WRITE`, in the terms of `poll(2)`.
extension pollfd {
    init(_ descriptor: Int32, events: Int32) {
        self.init(fd: descriptor, events: 0, revents: 0)
        if events & Int32(EV_READ) != 0 { self.events |= Int16(POLLIN) }
        if events & Int32(EV_WRITE) != 0 { self.events |= Int16(POLLOUT) }
    }

    /// What `poll` has found. A descriptor that is closed or broken counts as ready for everything: its owner finds out.
    var foundEvents: Int32 {
        let isBroken = revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
        var found: Int32 = 0
        if isBroken || revents & Int16(POLLIN) != 0 { found |= Int32(EV_READ) }
        if isBroken || revents & Int16(POLLOUT) != 0 { found |= Int32(EV_WRITE) }
        return found
    }
}
