/// The started watchers of a mode's sources, counted by descriptor, and the mirror of their descriptors.
struct StartedWatchers {
    /// Indexed by descriptor.
    private var counts: [UInt32] = []
    private var total = 0
    /// Rondo's own epoll set with the same descriptors, while the mode is embedded in a foreign loop. Set by
    /// `ModeLoop`.
    var mirror: DescriptorMirror?

    var isEmpty: Bool { total == 0 }

    /// Whether a watcher of `descriptor` is started.
    func contains(_ descriptor: Int32) -> Bool {
        Int(descriptor) < counts.count && counts[Int(descriptor)] > 0
    }

    /// Adds a watcher that was started.
    ///
    /// - Returns: The kernel's error, if the mirror could not add the descriptor; nil if it could, or there
    ///   is no mirror.
    mutating func add(_ watcher: WatcherPointer) -> SystemError? {
        let descriptor = Int(watcher.pointee.io.fd)
        while counts.count <= descriptor { counts.append(0) }
        counts[descriptor] += 1
        total += 1
        return mirror?.add(watcher.pointee.io.fd, events: watcher.pointee.events)
    }

    /// Removes a watcher that was stopped.
    mutating func remove(_ watcher: WatcherPointer) {
        let descriptor = watcher.pointee.io.fd
        mirror?.remove(descriptor, events: watcher.pointee.events)
        counts[Int(descriptor)] -= 1
        total -= 1
    }
}
