internal import Glibc
internal import RondoCore

/// Finds out which of the sockets that were written to between two looks at the kernel have space for more: one system call
/// for all of them, where each would need its own.
///
/// `@unchecked Sendable`: touched by the loop's thread alone.
final class SpaceLook: PutOffWork, @unchecked Sendable {
    /// Who comes beyond so many looks by itself.
    static let maximumPairs = 64

    private let loop: RunLoop
    @exclusivity(unchecked) private var pairs: [SocketPair] = []
    // Empty, but while they are looked at: room that is used again.
    @exclusivity(unchecked) private var looks: [SocketPair.SpaceLook] = []
    @exclusivity(unchecked) private var entries: [pollfd] = []

    init(_ loop: RunLoop) { self.loop = loop }

    /// In a callback of the loop, with no lock held.
    ///
    /// - Returns: False: it is to be found out now.
    func add(_ pair: SocketPair) -> Bool {
        guard pairs.isEmpty ? loop.putOff(self) : pairs.count < Self.maximumPairs else { return false }
        pairs.append(pair)
        return true
    }

    /// Nobody waits for it but those who have written.
    var outlastsTurn: Bool { true }

    func doWhatWasPutOff(isOld: Bool) {
        for pair in pairs {
            guard let look = pair.beginLookForSpace() else { continue }
            looks.append(look)
            entries.append(pollfd(fd: look.descriptor, events: Int16(POLLOUT), revents: 0))
        }
        SocketCalls.poll(&entries)
        for (look, entry) in zip(looks, entries) { look.pair.end(look, wasFound: entry.revents != 0) }
        pairs.removeAll(keepingCapacity: true)
        looks.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
    }
}
