internal import Glibc
internal import RondoCore

/// Finds out which of the sockets that were written to since the loop polled last have space for more: one system call
/// for all of them, where each would need its own.
///
/// `@unchecked Sendable`: only the loop's thread touches its arrays. A pair adds itself on that thread, if its events go to
/// that loop alone, and deferred work is done there.
final class SpaceCheck: DeferredWork, @unchecked Sendable {
    /// Pairs beyond this number are checked one by one.
    static let maximumPairs = 64

    private var pairs: [SocketPair] = []
    // Empty except while the sockets are polled: kept to use its memory again.
    private var entries: [pollfd] = []

    /// The check of `loop`, which is the calling thread's: a loop keeps one for all its modes.
    static func of(_ loop: RunLoop) -> SpaceCheck {
        loop.attachment(SpaceCheck.self, orMake: { SpaceCheck() })
    }

    /// On the loop's thread, with no lock held.
    ///
    /// - Returns: False: the caller has to look now.
    func add(_ pair: SocketPair) -> Bool {
        guard pairs.isEmpty ? deferLook() : pairs.count < Self.maximumPairs else {
            return false
        }
        pairs.append(pair)
        return true
    }

    /// - Returns: False: the loop has nothing to serve before, or defers nothing.
    private func deferLook() -> Bool {
        let loop = RunLoop.currentLoop()
        return loop.hasDescriptorsToServe() && loop.deferWork(self)
    }

    func performDeferredWork() -> Bool {
        // An object that is released with a pair may write.
        var looked: [SocketPair] = []
        swap(&looked, &pairs)
        for index in looked.indices {
            let descriptor = looked[index].beginSpaceCheck()
            entries.append(pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0))
        }
        SocketCalls.poll(&entries)
        for index in looked.indices { looked[index].endSpaceCheck(found: entries[index].revents != 0) }
        entries.removeAll(keepingCapacity: true)
        looked.removeAll(keepingCapacity: true)
        if pairs.isEmpty { swap(&looked, &pairs) }
        // Streams that have space have been enqueued, if there are any.
        return true
    }
}
