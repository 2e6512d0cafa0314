/// Clients of a courier who wait for their turns, in order.
///
/// In one array that keeps its room, since nearly every client comes to a queue that is empty: an `ArraySlice`, whose
/// front is taken off, would be copied to a new array for each of them.
struct CourierQueue: ~Copyable {
    /// As much room is kept for those who come next, in clients.
    static let keptRoom = 1_024

    /// Those who have had their turns are nil, and stand before `first`.
    private var clients: [(any CourierClient)?] = []
    private var first = 0

    var isEmpty: Bool { first == clients.count }

    var count: Int { clients.count - first }

    /// For how many clients there is room, whether they have had their turns or not.
    var room: Int { clients.capacity }

    mutating func append(_ client: any CourierClient) {
        // One that is never quite empty must not grow for ever, nor keep what a burst has needed.
        if first > 32, first > clients.count / 2 {
            if clients.capacity > Self.keptRoom, count < clients.capacity / 4 {
                clients = Array(clients[first...])
            } else {
                clients.removeFirst(first)
            }
            first = 0
        }
        clients.append(client)
    }

    mutating func popFirst() -> (any CourierClient)? {
        guard !isEmpty else { return nil }
        // One alone, as most often, is taken off the end: there is nothing else to clear away.
        if clients.count == 1, clients.capacity <= Self.keptRoom { return clients.removeLast() }
        let client = clients[first].take()
        first += 1
        makeRoom()
        return client
    }

    /// Does nothing where it does not wait.
    mutating func remove(_ client: any CourierClient) {
        // It is near the front: those who ask in several modes ask in the same order.
        guard let place = clients[first...].firstIndex(where: { $0 === client }) else { return }
        if place == first {
            _ = popFirst()
        } else {
            clients.remove(at: place)
        }
    }

    private mutating func makeRoom() {
        guard isEmpty else { return }
        clients.removeAll(keepingCapacity: clients.capacity <= Self.keptRoom)
        first = 0
    }
}
