internal import RondoCore

/// The way of a load's calls to its client: at once, by the client's queue, or, while the load is suspended, later.
///
/// A value, inside the gate of its load. It says which way a call goes; the load makes it.
struct LoadDelivery {
    /// What becomes of a call.
    enum Way {
        /// It is not made: the load is cancelled, or ended in another way.
        case dropped
        /// It waits until the load is resumed.
        case waits
        case byQueue(DelegateQueue?, any LoadClient)
        /// By the caller, on this thread.
        case atOnce(any LoadClient)
    }

    /// Kept alive by the load from start to end (rule UC-15).
    private(set) var client: (any LoadClient)?
    /// Calls that wait until the load is resumed; nil: there never was one.
    private var waiting: [DelegateCall]?
    /// The program was called since the last pass began.
    private(set) var hasCalled = false

    init(to client: any LoadClient) { self.client = client }

    /// The load is over: there is no client any more.
    mutating func end() -> (any LoadClient)? {
        waiting = nil
        return client.take()
    }

    /// - Parameter inbox: That of the load.
    mutating func way(of call: DelegateCall, _ inbox: borrowing LoadInbox) -> Way {
        guard let client, !client.isCancelled else { return .dropped }
        if inbox.isAborted {
            guard call.isTerminal || call.isMetrics else { return .dropped }
        } else if inbox.isSuspended || waiting != nil {
            // What came up later does not overtake what waits still.
            waiting = (waiting ?? []) + [call]
            return .waits
        }
        guard let queue = client.delegateQueue else {
            return inbox.callsOnLoop ? .atOnce(client) : .byQueue(nil, client)
        }
        return .byQueue(queue, client)
    }

    /// The calls that came up while the load was suspended: their ways are asked for anew. Nil: there are none.
    mutating func takeWaiting() -> [DelegateCall]? { waiting.take() }

    /// None of them is made any more.
    mutating func dropWaiting() { waiting = nil }

    // MARK: - Whether the program was called

    mutating func beginPass() { hasCalled = false }
    mutating func noteCall() { hasCalled = true }
}
