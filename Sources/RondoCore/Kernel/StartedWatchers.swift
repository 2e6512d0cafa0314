/// The started watchers of a mode's sources, counted by descriptor, and the mirror that has the same
/// descriptors.
struct StartedWatchers {
    /// By descriptor.
    private var counts: [UInt16] = []
    private var total = 0
    /// An epoll set of our own, while the mode is embedded in a foreign loop.
    var mirror: DescriptorMirror?

    var isEmpty: Bool { total == 0 }

    /// Whether a watcher of `descriptor` is started.
    func contains(_ descriptor: Int32) -> Bool {
        Int(descriptor) < counts.count && counts[Int(descriptor)] > 0
    }

    /// Adds a watcher that was started.
    ///
    /// - Returns: Why the kernel does not add its descriptor to the mirror; nil: it does, or there is no
    ///   mirror.
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
