import Testing

@testable import RondoCore

/// The queue of a port, as a value.
@Suite struct PortQueueTests {
    private func content(_ number: Int, bytes: Int = 0) -> PortContent {
        PortContent(msgid: UInt32(number), components: [.data(Data(count: bytes))], sender: nil)
    }

    @Test func `PM-4 messages come out in the order in which they went in, those that waited for room last`()
    {
        let queue = QueueHolder(limit: 2)
        let waiting = (3...5).map { BlockedSender(content($0)) }
        #expect(queue.put(content(1)))
        #expect(queue.put(content(2)))
        #expect(!queue.put(content(3)))
        for sender in waiting { queue.block(sender) }
        #expect(queue.takeFirst()?.msgid == 1)
        #expect(waiting.map(\.wasHandedOver) == [true, nil, nil])
        #expect(queue.giveUp(waiting[1]))
        #expect(!queue.giveUp(waiting[0]))
        // There is a sender that waits, and comes first.
        #expect(queue.takeFirst()?.msgid == 2)
        #expect(!queue.put(content(6)))
        #expect(queue.takeAll() == [3, 5])
        #expect(waiting.map(\.wasHandedOver) == [true, nil, true])
        #expect(queue.put(content(6)))
    }

    @Test func `PM-4 a larger limit lets in those that wait`() {
        let queue = QueueHolder(limit: 0)
        queue.setLimit(0)
        #expect(queue.limit == 1)
        #expect(queue.put(content(1)))
        let waiting = (2...4).map { BlockedSender(content($0)) }
        for sender in waiting { queue.block(sender) }
        queue.setLimit(3)
        #expect(waiting.map(\.wasHandedOver) == [true, true, nil])
        #expect(queue.removeAll().map(\.msgid) == [1, 2, 3])
        #expect(waiting[2].wasHandedOver == false)
        #expect(queue.isEmpty)
        #expect(queue.blockedCount == 0)
        #expect(queue.limit == 3)
    }

    @Test func `PM-4 PM-13 messages of peers have room of their own, and are counted in bytes too`() {
        let queue = QueueHolder(limit: 2)
        for number in 1...2 { #expect(queue.put(content(number))) }
        queue.putFromPeer(content(3, bytes: 1_000))
        queue.putFromPeer(content(4, bytes: 1_000))
        #expect(queue.peerCount == 2)
        #expect(queue.peerSize > 2_000)
        #expect(queue.takeAll() == [1, 2, 3, 4])
        #expect(queue.peerCount == 0)
        #expect(queue.peerSize == 0)
    }

    @Test func `PM-3 the order stays over many messages put in and taken out by turns`() {
        let queue = QueueHolder(limit: 1_000)
        var (next, expected) = (0, 0)
        for round in 0..<500 {
            for _ in 0..<round % 7 {
                #expect(queue.put(content(next)))
                next += 1
            }
            for _ in 0..<round % 5 {
                guard let taken = queue.takeFirst() else { break }
                #expect(taken.msgid == UInt32(expected))
                expected += 1
            }
        }
        #expect(queue.takeAll() == (expected..<next).map { UInt32($0) })
    }
}

/// A queue whose changing methods `#expect` can call.
private final class QueueHolder {
    private var queue: PortQueue

    init(limit: Int) { queue = PortQueue(limit: limit) }

    var limit: Int { queue.limit }
    var isEmpty: Bool { queue.isEmpty }
    var blockedCount: Int { queue.blockedCount }
    var peerCount: Int { queue.peerCount }
    var peerSize: Int { queue.peerSize }

    func put(_ content: PortContent) -> Bool { queue.put(content) }
    func putFromPeer(_ content: PortContent) { queue.putFromPeer(content) }
    func block(_ sender: BlockedSender) { queue.block(sender) }
    func giveUp(_ sender: BlockedSender) -> Bool { queue.giveUp(sender) }
    func takeFirst() -> PortContent? { queue.takeFirst() }
    func setLimit(_ limit: Int) { queue.setLimit(limit) }
    func removeAll() -> [PortContent] { queue.removeAll() }

    func takeAll() -> [UInt32] {
        var numbers: [UInt32] = []
        while let content = takeFirst() { numbers.append(content.msgid) }
        return numbers
    }
}
