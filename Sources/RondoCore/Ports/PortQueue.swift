/// The messages that wait in a port, in order, and the senders that wait for room.
///
/// Messages of this process and messages from sockets are counted separately, each up to the limit, so that
/// neither kind can shut out the other.
struct PortQueue {
    /// The most messages of each kind; at least 1.
    private(set) var limit: Int
    private var entries: [Entry?] = []
    /// The index of the first message; those before it have been taken.
    private var head = 0
    /// The number of this process's messages among the entries.
    private var ownCount = 0
    /// The number of peers' messages among the entries, and their memory in bytes.
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
    /// The number of threads that wait for room.
    var blockedCount: Int { blocked.count }

    /// Appends a message of this process; returns false if there is no room.
    mutating func put(_ content: PortContent) -> Bool {
        // Senders that wait already come first.
        guard blocked.isEmpty, ownCount < limit else { return false }
        append(content)
        return true
    }

    /// Makes `sender` wait for room: its message is appended once another has been taken.
    mutating func block(_ sender: BlockedSender) { blocked.append(sender) }

    /// Ends the wait of `sender` without sending its message.
    ///
    /// - Returns: False if the sender is no longer waiting; its outcome is then already set.
    mutating func giveUp(_ sender: BlockedSender) -> Bool {
        guard let index = blocked.firstIndex(where: { $0 === sender }) else { return false }
        blocked.remove(at: index)
        return true
    }

    /// Appends a message of a peer. The reader of the peer's socket has checked that there is room.
    mutating func putFromPeer(_ content: PortContent) {
        entries.append(Entry(content: content, isFromPeer: true))
        peerCount += 1
        peerSize += content.size
    }

    mutating func takeFirst() -> PortContent? {
        guard !isEmpty, let first = entries[head] else { return nil }
        entries[head] = nil
        head += 1
        // Removed many at once: removing each by itself would move all the others each time.
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

    /// Removes all messages, and ends the wait of blocked senders without success.
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
