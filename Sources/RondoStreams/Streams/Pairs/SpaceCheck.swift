internal import Glibc
internal import RondoCore

/// Checks the sockets that were written to since the loop polled last for space: one system call for all of
/// them, where each would need its own.
///
/// `@unchecked Sendable`: only the loop's thread touches the arrays. A pair adds itself on that thread, if
/// its events go to that loop alone, and deferred work is done there.
final class SpaceCheck: DeferredWork, @unchecked Sendable {
    /// The most pairs of one check; further pairs are checked one by one.
    static let maximumPairs = 64

    private var pairs: [SocketPair] = []
    // Empty except while the sockets are polled; kept to reuse its memory.
    private var entries: [pollfd] = []

    /// The check of `loop`, which must be the calling thread's; a loop has one for all its modes.
    static func of(_ loop: RunLoop) -> SpaceCheck {
        loop.attachment(SpaceCheck.self, orMake: { SpaceCheck() })
    }

    /// Adds a pair. Must be called on the thread of `loop`, whose check this is, with no lock held.
    ///
    /// - Returns: False if the caller has to check at once: the loop has no descriptors left to serve first,
    ///   or defers no work.
    func add(_ pair: SocketPair, on loop: RunLoop) -> Bool {
        guard
            pairs.isEmpty
                ? loop.hasDescriptorsToServe() && loop.deferWork(self)
                : pairs.count < Self.maximumPairs
        else { return false }
        pairs.append(pair)
        return true
    }

    func performDeferredWork() -> Bool {
        // Releasing a pair may run code that writes, and that may add a pair.
        var looked: [SocketPair] = []
        swap(&looked, &pairs)
        for index in looked.indices {
            let descriptor = looked[index].beginSpaceCheck()
            entries.append(pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0))
        }
        // Pairs that were closed meanwhile need no answer.
        if entries.contains(where: { $0.fd >= 0 }) { SocketCalls.poll(&entries) }
        for index in looked.indices { looked[index].endSpaceCheck(found: entries[index].revents != 0) }
        entries.removeAll(keepingCapacity: true)
        looked.removeAll(keepingCapacity: true)
        if pairs.isEmpty { swap(&looked, &pairs) }
        // Streams with space, if any, have been enqueued.
        return true
    }
}
