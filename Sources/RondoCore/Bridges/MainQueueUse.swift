internal import CRondoEv

/// Sees whether the descriptor of the main queue was written or read: Foundation's loop reads it when it drains the queue, and
/// has no call that says so.
///
/// Main thread only.
final class MainQueueUse {
    private let set: Int32
    private var wasSeen = false

    /// Nil: descriptors have run out.
    init?() {
        guard let descriptor = MainQueue.descriptor,
            let set = try? systemCall("epoll_create1", { rondo_epoll() })
        else { return nil }
        self.set = set
        if (try? systemCall("epoll_ctl") { rondo_epoll_add_edges(set, descriptor) }) == nil {
            close(set)
            return nil
        }
        begin()
    }

    deinit { close(set) }

    /// Whether it was used since `begin(asSeen:)`.
    var isSeen: Bool {
        if !wasSeen { wasSeen = rondo_epoll_has_events(set) != 0 }
        return wasSeen
    }

    /// What happened until now does not count.
    func begin(asSeen wasSeen: Bool = false) {
        _ = rondo_epoll_has_events(set)
        self.wasSeen = wasSeen
    }
}
