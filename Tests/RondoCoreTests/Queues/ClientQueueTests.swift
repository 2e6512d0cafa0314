import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct ClientQueueTests {
    private final class Client: SharedQueueClient {
        func serve(by queue: SharedQueue) -> Bool { true }
    }

    @Test func `clients are served in order, without those that were withdrawn`() {
        let clients = (0..<6).map { _ in Client() }
        var queue = ClientQueue()
        for client in clients { queue.append(client) }
        queue.remove(clients[0])
        queue.remove(clients[3])
        queue.remove(clients[0])
        #expect(queue.count == 4)
        queue.append(clients[0])
        var order: [Int?] = []
        while let client = queue.popFirst() { order.append(clients.firstIndex { $0 === client }) }
        #expect(order == [1, 2, 4, 5, 0])
        let isEmpty = queue.isEmpty
        #expect(isEmpty && queue.count == 0)
        // The client that is alone in the queue.
        queue.append(clients[1])
        queue.remove(clients[1])
        #expect(queue.popFirst() == nil)
    }

    @Test func `a client that is prepended is served before the others`() {
        let clients = (0..<5).map { _ in Client() }
        var queue = ClientQueue()
        queue.prepend(clients[1])
        queue.append(clients[2])
        queue.prepend(clients[0])
        var order = [queue.popFirst(), queue.popFirst()].map { found in clients.firstIndex { $0 === found } }
        // In the place of one that was served.
        queue.prepend(clients[3])
        queue.prepend(clients[4])
        #expect(queue.count == 3)
        while let client = queue.popFirst() { order.append(clients.firstIndex { $0 === client }) }
        #expect(order == [0, 1, 4, 3, 2])
    }

    @Test func `a queue that is never empty has no more capacity than it needs`() {
        var queue = ClientQueue()
        let client = Client()
        for _ in 0..<10 { queue.append(client) }
        for _ in 0..<10_000 {
            queue.append(client)
            _ = queue.popFirst()
        }
        #expect(queue.count == 10)
        #expect(queue.capacity < 256)
        // The capacity is given back after a burst too.
        for _ in 0..<100_000 { queue.append(client) }
        while queue.count > 10 { _ = queue.popFirst() }
        for _ in 0..<100 {
            queue.append(client)
            _ = queue.popFirst()
        }
        #expect(queue.count == 10)
        #expect(queue.capacity <= ClientQueue.retainedCapacity)
    }

    @Test func `memory of a burst is given back, and clients are released when they are served`() {
        var queue = ClientQueue()
        weak var released: Client?
        do {
            let client = Client()
            released = client
            for _ in 0..<5_000 { queue.append(client) }
        }
        while queue.popFirst() != nil {}
        #expect(queue.capacity <= ClientQueue.retainedCapacity)
        #expect(released == nil)
        for _ in 0..<3 { queue.append(Client()) }
        let capacity = queue.capacity
        while queue.popFirst() != nil {}
        #expect(queue.capacity == capacity)
    }
}
