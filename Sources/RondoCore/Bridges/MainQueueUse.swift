internal import CRondoEv

/// Detects whether the main queue's descriptor was written or read. Foundation's loop reads it to drain the
/// queue, and has no function that reports this.
///
/// Main thread only.
final class MainQueueUse {
    private let set: Int32
    private var wasSeen = false

    /// Returns nil if descriptors have run out.
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

    /// Whether the descriptor was used since `begin(asSeen:)`.
    var isSeen: Bool {
        if !wasSeen { wasSeen = rondo_epoll_has_events(set) != 0 }
        return wasSeen
    }

    /// Starts over: forgets what happened until now.
    func begin(asSeen wasSeen: Bool = false) {
        _ = rondo_epoll_has_events(set)
        self.wasSeen = wasSeen
    }
}
