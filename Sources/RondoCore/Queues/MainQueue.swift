internal import CRondoEv

internal import struct Synchronization.Atomic

/// The main dispatch queue: its descriptor, and whether it has work.
enum MainQueue {
    private static let known = Atomic<Int32>(-1)

    /// The eventfd by which libdispatch signals that there is work; it never changes. Nil if there is none
    /// yet because descriptors have run out.
    ///
    /// libdispatch makes the eventfd when it is first asked for it, and traps if it cannot. So this asks only
    /// after a probe has shown that one can be made.
    static var descriptor: Int32? {
        let found = known.load(ordering: .relaxed)
        if found >= 0 { return found }
        guard let probe = try? systemCall("eventfd", { rondo_eventfd() }) else { return nil }
        close(probe)
        let made = _dispatch_get_main_queue_handle_4CF()
        known.store(made, ordering: .relaxed)
        return made
    }

    /// An epoll set with only that descriptor, for the life of the process; nil if descriptors had run out.
    private static let epollSet: Int32? = {
        guard let descriptor, let set = try? systemCall("epoll_create1", { rondo_epoll() }) else {
            return nil
        }
        if (try? systemCall("epoll_ctl") { rondo_epoll_set(set, descriptor, 1, 0) }) != nil { return set }
        close(set)
        return nil
    }()

    /// Runs the queue's blocks. Main thread only; inside one of those blocks it runs none.
    static func drain() {
        var count: eventfd_t = 0
        // libdispatch expects the loop to read the wake-up; if there is none, that is no error.
        if let descriptor { _ = try? systemCall("eventfd_read") { eventfd_read(descriptor, &count) } }
        _dispatch_main_queue_callback_4CF(nil)
    }

    /// Whether the queue has work. Nearly every pass of the main loop asks. The kernel keeps the ready list
    /// of an epoll set, so epoll answers in half the time that `poll` takes.
    static var hasWork: Bool {
        if let epollSet {
            let found = rondo_epoll_has_events(epollSet)
            if found >= 0 { return found > 0 }
        }
        guard let descriptor else { return false }
        return hasInput(descriptor)
    }

    /// Whether the queue has work that only the main thread can do. Any thread.
    ///
    /// After `dispatchMain` other threads do the work. libdispatch has closed the eventfd then, whose number
    /// may stand for another file, and returns a handle that is none; it never makes another one.
    static var waitsForMainThread: Bool {
        guard let descriptor, hasInput(descriptor) else { return false }
        return _dispatch_get_main_queue_handle_4CF() == descriptor
    }

    private static func hasInput(_ descriptor: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) > 0
    }
}
