internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP

/// The queues of a WebSocket: messages and pings to send, waiting receivers, received messages, and pings
/// without their pongs. A value without I/O; each handler leaves it exactly once.
struct WebSocketQueues {
    typealias Receiver = @Sendable (Result<WebSocketMessage, any Error>) -> Void
    typealias Completion = @Sendable ((any Error)?) -> Void

    enum Outgoing {
        case message(WebSocketMessage)
        case ping
    }

    struct Sending {
        let identifier: Int
        let what: Outgoing
        let completion: Completion
    }

    /// The message that is being sent.
    private struct Current {
        enum State {
            case offered
            /// The message was cancelled while it was offered: it is removed if the connection takes none of
            /// it.
            case cancelled
            /// The connection has taken none of its bytes and takes none now.
            case waiting
        }

        let sending: Sending
        var state = State.offered
    }

    /// The bytes that a message counts in addition to its payload, so that the number of empty messages is
    /// limited too.
    private static let overhead = 64

    var maximumMessageSize = 1_048_576
    /// The program's close frame, if it has closed the WebSocket.
    var close: WebSocketClose?
    private var lastIdentifier = 0
    /// Keyed by identifier, like every queue except `messages`.
    private var outgoing = KeyedQueue<Int, Sending>()
    private var current: Current?
    private var receivers = KeyedQueue<Int, Receiver>()
    private var messages = FIFO<WebSocketMessage>()
    private var waitingBytes = 0
    /// The pings whose pongs have not arrived. One that was cancelled has no handler; it is kept because its
    /// pong ends the wait of those before it, and so is never the first.
    private var pings = KeyedQueue<Int, Completion?>()

    // MARK: - Properties

    /// True if another message may be read (rule WS-10).
    var takesMessages: Bool { waitingBytes == 0 || waitingBytes < maximumMessageSize }

    var hasMessages: Bool { !messages.isEmpty }

    /// The number of pings that are kept until their pongs come; for tests.
    var pingCount: Int { pings.count }

    // MARK: - Adding operations

    mutating func add(_ what: Outgoing, _ completion: @escaping Completion) -> Int {
        lastIdentifier += 1
        let sending = Sending(identifier: lastIdentifier, what: what, completion: completion)
        outgoing.insert(sending, key: lastIdentifier)
        return lastIdentifier
    }

    mutating func add(_ receiver: @escaping Receiver) -> Int {
        lastIdentifier += 1
        receivers.insert(receiver, key: lastIdentifier)
        return lastIdentifier
    }

    /// Removes a message or ping that was not sent, or a ping whose pong has not arrived.
    ///
    /// - Returns: Its handler, which the caller releases; nil if it is too late, or if the message is being
    ///   sent: then it is removed if the connection takes none of it.
    mutating func cancelSend(_ identifier: Int) -> Completion? {
        if let current, current.sending.identifier == identifier {
            switch current.state {
            case .offered, .cancelled: self.current?.state = .cancelled
            case .waiting: return endSending()
            }
        }
        if let sending = outgoing.remove(identifier) { return sending.completion }
        let completion = pings.change(identifier) { $0.take() }
        dropCancelledPings()
        return completion ?? nil
    }

    /// Drops the cancelled pings before all others: no ping waits for their pongs.
    private mutating func dropCancelledPings() {
        while let first = pings.first, first == nil { _ = pings.popFirst() }
    }

    mutating func cancelReceive(_ identifier: Int) -> Receiver? {
        receivers.remove(identifier)
    }

    // MARK: - Performing operations

    /// Removes the next message or ping. A message is being sent until `endSending()`; a ping waits for its
    /// pong.
    mutating func takeOutgoing() -> Sending? {
        guard let next = outgoing.popFirst() else { return nil }
        switch next.what {
        case .message: current = Current(sending: next)
        case .ping: pings.insert(next.completion, key: next.identifier)
        }
        return next
    }

    /// Notes that the connection took nothing of the message that is being sent: until `endWait()` it can be
    /// cancelled.
    ///
    /// - Returns: Its handler, which the caller releases, if the message was cancelled already.
    mutating func beginWait() -> Completion? {
        if case .cancelled? = current?.state { return endSending() }
        current?.state = .waiting
        return nil
    }

    /// Notes that the connection is offered the message that is being sent.
    ///
    /// - Returns: False if there is none any more.
    mutating func endWait() -> Bool {
        if case .waiting? = current?.state { current?.state = .offered }
        return current != nil
    }

    /// - Returns: The handler of the message that was being sent.
    mutating func endSending() -> Completion? { current.take()?.sending.completion }

    /// - Returns: The handlers of this ping, unless it was cancelled, and of those before it; none if no pong
    ///   with this number is awaited.
    mutating func takePings(upTo identifier: Int) -> [Completion] {
        guard pings.contains(identifier) else { return [] }
        var taken: [Completion] = []
        while let first = pings.firstKey, first <= identifier {
            if let ping = pings.popFirst(), let completion = ping { taken.append(completion) }
        }
        dropCancelledPings()
        return taken
    }

    mutating func add(_ message: WebSocketMessage) {
        messages.append(message)
        waitingBytes += message.size + Self.overhead
    }

    mutating func takeMessage() -> WebSocketMessage? {
        guard let message = messages.popFirst() else { return nil }
        waitingBytes -= message.size + Self.overhead
        return message
    }

    /// The next message with the receiver that has waited longest.
    mutating func takePair() -> (WebSocketMessage, Receiver)? {
        guard !messages.isEmpty, let first = receivers.popFirst(), let message = takeMessage() else {
            return nil
        }
        return (message, first)
    }

    // MARK: - After the end

    mutating func takeReceivers() -> [Receiver] {
        var all: [Receiver] = []
        while let next = receivers.popFirst() { all.append(next) }
        return all
    }

    /// Removes the handlers of pings and unsent messages, in the order of their calls.
    mutating func takeSenders() -> [Completion] {
        var all: [Completion] = []
        while let next = pings.popFirst() {
            if let completion = next { all.append(completion) }
        }
        while let next = outgoing.popFirst() { all.append(next.completion) }
        return all
    }

    /// Drops received messages, which a program that has closed the WebSocket does not get.
    mutating func dropMessages() {
        messages = FIFO()
        waitingBytes = 0
    }
}
