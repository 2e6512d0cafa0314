/// Clients of a shared queue that wait to be served, in order.
///
/// The array keeps its capacity: nearly every client is appended to an empty queue, and an `ArraySlice` whose
/// front is removed would be copied to a new array for each client.
struct ClientQueue: ~Copyable {
    /// The capacity, in clients, that an empty queue may keep.
    static let retainedCapacity = 1_024

    /// The elements before `first` have been taken and are nil.
    private var clients: [(any SharedQueueClient)?] = []
    private var first = 0

    var isEmpty: Bool { first == clients.count }

    var count: Int { clients.count - first }

    var capacity: Int { clients.capacity }

    mutating func append(_ client: any SharedQueueClient) {
        // Without this, a queue that is never quite empty would grow for ever, or keep the memory of a burst.
        if first > 32, first > clients.count / 2 {
            if clients.capacity > Self.retainedCapacity, count < clients.capacity / 4 {
                clients = Array(clients[first...])
            } else {
                clients.removeFirst(first)
            }
            first = 0
        }
        clients.append(client)
    }

    /// Puts `client` before all others.
    mutating func prepend(_ client: any SharedQueueClient) {
        guard first > 0 else { return clients.insert(client, at: 0) }
        first -= 1
        clients[first] = client
    }

    mutating func popFirst() -> (any SharedQueueClient)? {
        guard !isEmpty else { return nil }
        // A single client, the usual case, is removed from the end, which leaves nothing to clear.
        if clients.count == 1, clients.capacity <= Self.retainedCapacity { return clients.removeLast() }
        let client = clients[first].take()
        first += 1
        clearIfEmpty()
        return client
    }

    /// Removes `client` from the queue, if it is there.
    mutating func remove(_ client: any SharedQueueClient) {
        // The client is near the front: clients of several modes are enqueued in the same order in each
        // queue.
        guard let index = clients[first...].firstIndex(where: { $0 === client }) else { return }
        if index == first {
            _ = popFirst()
        } else {
            clients.remove(at: index)
        }
    }

    private mutating func clearIfEmpty() {
        guard isEmpty else { return }
        clients.removeAll(keepingCapacity: clients.capacity <= Self.retainedCapacity)
        first = 0
    }
}
