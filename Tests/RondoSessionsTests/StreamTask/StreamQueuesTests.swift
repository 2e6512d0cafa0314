import Foundation
import RondoTestSupport
import Testing

@testable import RondoSessions

/// Tests the value that decides which operation a stream task performs next.
@Suite struct StreamQueuesTests {
    private let read: StreamQueues.ReadHandler = { _, _, _ in }
    private let write: StreamQueues.WriteHandler = { _ in }

    /// Takes from `queues` what a stream task would do next, until there is nothing more, and names each step.
    private static func steps(_ queues: inout StreamQueues) -> [String] {
        var steps: [String] = []
        while true {
            if let next = queues.nextRead, queues.take(next) {
                if case .read(let read) = next {
                    steps.append("read \(read.number)")
                } else {
                    steps.append("close read")
                }
            } else if let next = queues.takeWriting() {
                if case .write(let write) = next {
                    steps.append("write \(write.number)")
                } else {
                    steps.append("close write")
                }
                _ = queues.endWrite()
            } else if let change = queues.takeChange() {
                steps.append("\(change)")
            } else {
                return steps
            }
        }
    }

    @Test func `US-89 reads are performed in the order of their calls, and so are writes, independently`() {
        var queues = StreamQueues()
        #expect(queues.isEmpty)
        let numbers = [
            queues.addWrite(Data([1]), write), queues.addRead(minimum: 1, maximum: 1, read),
            queues.addWrite(Data([2]), write), queues.addRead(minimum: 1, maximum: 1, read),
        ]
        #expect(numbers == [1, 2, 3, 4])
        queues.addCloseWrite()
        queues.addCloseRead()
        #expect(
            Self.steps(&queues) == ["read 2", "read 4", "close read", "write 1", "write 3", "close write"])
        #expect(queues.isEmpty)
    }

    @Test func `US-89 one write is performed at a time`() {
        var queues = StreamQueues()
        _ = queues.addWrite(Data([1]), write)
        _ = queues.addWrite(Data([2]), write)
        guard case .write = queues.takeWriting() else {
            Issue.record("there is a write")
            return
        }
        #expect(queues.current?.number == 1)
        #expect(queues.takeWriting() == nil)
        #expect(queues.endWrite()?.number == 1)
        #expect(queues.endWrite() == nil)
        #expect(queues.takeWriting() != nil)
        #expect(!queues.isEmpty)
    }

    @Test func `US-89 a change of the connection is made after all earlier and before all later operations`()
    {
        var queues = StreamQueues()
        _ = queues.addRead(minimum: 1, maximum: 1, read)
        queues.add(.secure)
        _ = queues.addWrite(Data([1]), write)
        _ = queues.addRead(minimum: 1, maximum: 1, read)
        queues.add(.capture)
        #expect(queues.takeWriting() == nil, "it waits for TLS")
        #expect(queues.takeChange() == nil, "TLS waits for the read")
        #expect(Self.steps(&queues) == ["read 1", "secure", "read 4", "write 3", "capture"])
    }

    @Test func `US-89 a change of the connection waits for the current write`() {
        var queues = StreamQueues()
        _ = queues.addWrite(Data([1]), write)
        queues.add(.secure)
        _ = queues.takeWriting()
        #expect(queues.takeChange() == nil)
        _ = queues.endWrite()
        #expect(queues.takeChange() == .secure)
    }

    @Test(arguments: [(0, 0, 1, 1), (-5, 10, 1, 10), (20, 10, 10, 10), (3, 5, 3, 5)])
    func `US-89 a read asks for at least one byte, and its minimum is at most its maximum`(
        minimum: Int, maximum: Int, least: Int, most: Int
    ) {
        var queues = StreamQueues()
        _ = queues.addRead(minimum: minimum, maximum: maximum, read)
        guard case .read(let next) = queues.nextRead else {
            Issue.record("there is a read")
            return
        }
        #expect(next.minimum == least && next.maximum == most)
    }

    @Test func `US-30 no operation is begun while the task is suspended`() {
        var queues = StreamQueues()
        _ = queues.addRead(minimum: 1, maximum: 1, read)
        _ = queues.addWrite(Data(), write)
        queues.isHalted = true
        #expect(Self.steps(&queues).isEmpty)
        queues.isHalted = false
        #expect(Self.steps(&queues) == ["read 1", "write 2"])
        queues.add(.capture)
        queues.isHalted = true
        #expect(queues.takeChange() == nil)
    }

    @Test func `US-82 an operation that was not begun can be cancelled once, and no other can`() {
        var queues = StreamQueues()
        let (first, second) = (queues.addWrite(Data(), write), queues.addWrite(Data(), write))
        let third = queues.addRead(minimum: 1, maximum: 1, read)
        _ = queues.takeWriting()
        #expect(queues.removeWrite(first) == nil, "it is under way")
        #expect(queues.removeWrite(third) == nil && queues.removeRead(second) == nil, "of the other kind")
        #expect(queues.removeWrite(second) != nil)
        #expect(queues.removeWrite(second) == nil)
        guard let next = queues.nextRead else {
            Issue.record("there is a read")
            return
        }
        #expect(queues.removeRead(third) != nil)
        let isThere = queues.take(next)
        #expect(!isThere, "it was taken back meanwhile")
    }

    @Test func `US-89 at the end each waiting handler is returned once, in the order of the calls`() {
        var queues = StreamQueues()
        let (read, written) = (Box([Int]()), Box([Int]()))
        for number in 1...3 {
            _ = queues.addRead(minimum: 1, maximum: 1) { _, _, _ in read.value.append(number) }
            _ = queues.addWrite(Data()) { _ in written.value.append(number) }
        }
        queues.addCloseRead()
        queues.add(.secure)
        _ = queues.takeWriting()
        let all = queues.takeAll()
        for handler in all.reads { handler(nil, true, nil) }
        for handler in all.writes { handler(nil) }
        #expect(read.value == [1, 2, 3] && written.value == [1, 2, 3])
        #expect(queues.isEmpty)
        #expect(queues.takeAll().reads.isEmpty && queues.takeAll().writes.isEmpty)
    }
}
