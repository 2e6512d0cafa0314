/// The messages that wait in a port, in order, and those that wait for room with their senders.
///
/// What this process sends and what a socket brings are counted apart, each up to the limit: so neither can keep the
/// other out for ever.
struct PortQueue {
    /// How many messages of each kind there may be; at least 1.
    private(set) var limit: Int
    private var entries: [Entry?] = []
    /// The place of the first message: those before it were taken.
    private var head = 0
    /// Messages of this process among the entries.
    private var ownCount = 0
    /// Messages of peers among the entries, and the memory that they take, in bytes.
    private(set) var peerCount = 0
    private(set) var peerSize = 0
    private var blocked: [BlockedSender] = []

    private struct Entry {
        let content: PortContent
        let isFromPeer: Bool
    }

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count - head }
    var isEmpty: Bool { count == 0 }
    /// How many threads wait for room.
    var blockedCount: Int { blocked.count }

    /// Puts in a message of this process; false: there is no room.
    mutating func put(_ content: PortContent) -> Bool {
        // Those that wait already come first.
        guard blocked.isEmpty, ownCount < limit else { return false }
        append(content)
        return true
    }

    /// Has `sender` wait for room: its message is put in when some has been taken out.
    mutating func block(_ sender: BlockedSender) { blocked.append(sender) }

    /// Lets `sender` give up.
    ///
    /// - Returns: False: it waits no longer, and has its answer.
    mutating func giveUp(_ sender: BlockedSender) -> Bool {
        guard let index = blocked.firstIndex(where: { $0 === sender }) else { return false }
        blocked.remove(at: index)
        return true
    }

    /// Puts in a message of a peer. The reader of its socket has seen to it that there is room.
    mutating func putFromPeer(_ content: PortContent) {
        entries.append(Entry(content: content, isFromPeer: true))
        peerCount += 1
        peerSize += content.size
    }

    mutating func takeFirst() -> PortContent? {
        guard !isEmpty, let first = entries[head] else { return nil }
        entries[head] = nil
        head += 1
        // Not one by one, which would move all the others each time.
        if head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
        if first.isFromPeer {
            peerCount -= 1
            peerSize -= first.content.size
        } else {
            ownCount -= 1
            admitBlocked()
        }
        return first.content
    }

    mutating func setLimit(_ limit: Int) {
        self.limit = max(1, limit)
        admitBlocked()
    }

    /// Takes out everything, and tells the senders that wait that it was in vain.
    mutating func removeAll() -> [PortContent] {
        let dropped = entries.compactMap(\.?.content)
        for sender in blocked { sender.finish(handedOver: false) }
        self = PortQueue(limit: limit)
        return dropped
    }

    private mutating func admitBlocked() {
        while ownCount < limit, !blocked.isEmpty {
            let sender = blocked.removeFirst()
            append(sender.content)
            sender.finish(handedOver: true)
        }
    }

    private mutating func append(_ content: PortContent) {
        entries.append(Entry(content: content, isFromPeer: false))
        ownCount += 1
    }
}
