internal import Glibc
internal import RondoCore

/// Finds out which of the sockets that were written to since the loop polled last have space for more: one system call
/// for all of them, where each would need its own.
///
/// `@unchecked Sendable`: its arrays are touched by the loop's thread alone. A pair adds itself where it is
/// told in that loop alone, and deferred work is done there.
final class SpaceCheck: DeferredWork, @unchecked Sendable {
    /// Pairs beyond this number are checked one by one.
    static let maximumPairs = 64

    @exclusivity(unchecked) private var pairs: [SocketPair] = []
    // Empty, but while they are looked at: room that is used again.
    @exclusivity(unchecked) private var entries: [pollfd] = []

    /// That of `loop`, which is the calling thread's: a loop keeps one for all its modes.
    static func of(_ loop: RunLoop) -> SpaceCheck? {
        loop.attachment(SpaceCheck.self, orMake: { SpaceCheck() }) as? SpaceCheck
    }

    /// On the loop's thread, with no lock held.
    ///
    /// - Returns: False: it is to be found out now.
    func add(_ pair: SocketPair) -> Bool {
        guard pairs.isEmpty ? isDeferred() : pairs.count < Self.maximumPairs else {
            return false
        }
        pairs.append(pair)
        return true
    }

    private func isDeferred() -> Bool {
        let loop = RunLoop.currentLoop()
        return loop.hasDescriptorsToServe() && loop.deferWork(self)
    }

    func performDeferredWork() -> Bool {
        // What is released with a pair may write.
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
