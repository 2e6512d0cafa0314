internal import RondoCore

/// The client of a load, and the calls that wait until the load is resumed.
///
/// Decides how a call to the client is made: at once, by the client's queue, or later, if the load is
/// suspended. The load makes the calls. A value, inside the gate of its load.
struct LoadDelivery {
    /// How a call is made.
    enum Method {
        /// It is not made: the load was cancelled, or has ended in another way.
        case dropped
        /// It waits until the load is resumed.
        case waits
        /// It is an end that is not made: the end that the client has commanded follows.
        case superseded
        case byQueue(DelegateQueue?, any LoadClient)
        /// The caller makes it, on this thread.
        case atOnce(any LoadClient)
    }

    /// Kept alive by the load from start to end (rule UC-15).
    private(set) var client: (any LoadClient)?
    /// Calls that wait until the load is resumed; nil if there never was one.
    private var waiting: [DelegateCall]?
    /// True if the program was called since the last pass began.
    private(set) var hasCalled = false

    init(to client: any LoadClient) { self.client = client }

    /// Releases the client, because the load is over.
    mutating func end() -> (any LoadClient)? {
        waiting = nil
        return client.take()
    }

    /// - Parameter inbox: The inbox of the load.
    mutating func method(of call: DelegateCall, _ inbox: borrowing LoadInbox) -> Method {
        guard let client, !client.isCancelled else { return .dropped }
        if inbox.isAborted {
            guard call.isMadeAfterAbort else { return call.isTerminal ? .superseded : .dropped }
        } else if inbox.isSuspended || waiting != nil {
            // A later call must not overtake those that wait.
            if waiting == nil { waiting = [] }
            waiting?.append(call)
            return .waits
        }
        guard let queue = client.delegateQueue else {
            return inbox.callsOnLoop ? .atOnce(client) : .byQueue(nil, client)
        }
        return .byQueue(queue, client)
    }

    /// Takes the calls that waited while the load was suspended; nil if there are none. Pass each to
    /// `method(of:_:)` again.
    mutating func takeWaiting() -> [DelegateCall]? { waiting.take() }

    /// Drops the calls that wait.
    ///
    /// - Returns: The partial file of a download whose end was among them.
    mutating func dropWaiting() -> PartialDownload? { waiting.take()?.last?.partial }

    // MARK: - Whether the program was called

    mutating func beginPass() { hasCalled = false }
    mutating func noteCall() { hasCalled = true }
}
