internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// Gets the events of a WebSocket, on the delegate queue or the session's run loop.
protocol WebSocketClient: AnyObject, Sendable {
    /// The handshake has succeeded.
    func tellOpened(_ subprotocol: String?)
    /// The WebSocket was closed by a close frame.
    func tellClosed(_ code: Int, _ reason: Data?)
}

/// The state that a WebSocket task, on any thread, shares with the upgrade of its load, inside the load's
/// gate.
///
///     connecting ─ 101 ─▶ open ─ close frame, failure, the program's cancel ─▶ ending ─▶ over
///
/// Operations wait here until the upgrade takes them in a pass of a scheduled mode. Once the task has ended,
/// the schedule calls the handlers of further operations.
final class WebSocketTaskState: Sendable {
    /// How the WebSocket ends.
    struct Closing: Sendable {
        /// The code that the program sees; 0 if the WebSocket was not opened, or is closed without a code.
        var code = 0
        var reason: Data?
        /// The error for all waiting and later operations.
        let error: URLError
    }

    enum Phase {
        case connecting
        /// The program has cancelled the task before the WebSocket was open, so that it does not open any
        /// more.
        case cancelledBeforeOpen
        case open
        /// The closing handshake is under way, or the server is expected to end the connection.
        case ending(Closing)
        case over(Closing)
    }

    /// The state behind the lock. It is changed by `WebSocketUpgrade` and `WebSocketSender` too, on the
    /// thread of the session's schedule: this state is what they and the task exchange, and the lock is all
    /// that they share.
    struct State {
        weak var client: (any WebSocketClient)?
        /// The load, from the success of the handshake to the end.
        var load: (any UpgradeOwner)?
        var queues = WebSocketQueues()
        /// Handlers of messages and pings that were sent too late.
        var late: [WebSocketQueues.Completion] = []
        var offersCompression = true
        fileprivate(set) var phase = Phase.connecting
        /// While true, each write restarts the closing timeout. Set to false when the program ends the
        /// session, or closes a WebSocket that is closing already (rule WS-17).
        var mayProlongClosing = true
        /// The closing timeout has expired. A write may still restart it.
        var isTimeUp = false
        var url: URL?
    }

    let state = Mutex(State())
    private let protocols: [String]
    /// Calls the handlers of operations that come after the end, once the last call of the task has returned.
    private let lateHandlers: QueuedHandlers

    init(protocols: [String], schedule: SessionSchedule) {
        self.protocols = protocols
        lateHandlers = QueuedHandlers(schedule)
    }

    func belong(to client: any WebSocketClient, _ url: URL?) {
        state.withLock { state in
            state.client = client
            state.url = url
        }
    }

    // MARK: - The task. Any thread.

    var maximumMessageSize: Int {
        get { state.withLock { $0.queues.maximumMessageSize } }
        set { change { $0.queues.maximumMessageSize = max(0, newValue) } }
    }

    var offersCompression: Bool {
        get { state.withLock { $0.offersCompression } }
        set { state.withLock { $0.offersCompression = newValue } }
    }

    /// Nil as long as the WebSocket does not end.
    var closing: Closing? { state.withLock { $0.closing } }
    /// True from the success of the handshake until the task is over.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    func send(_ message: WebSocketMessage, _ completion: @escaping WebSocketQueues.Completion) -> Int {
        add(.message(message), completion)
    }

    func ping(_ completion: @escaping WebSocketQueues.Completion) -> Int { add(.ping, completion) }

    private func add(_ what: WebSocketQueues.Outgoing, _ completion: @escaping WebSocketQueues.Completion)
        -> Int
    {
        change { state in
            if !state.isEnding { return state.queues.add(what, completion) }
            state.late.append(completion)
            return 0
        }
    }

    func receive(_ receiver: @escaping WebSocketQueues.Receiver) -> Int {
        change { $0.queues.add(receiver) }
    }

    /// - Returns: False if the message is being sent, or the pong of the ping has arrived.
    func cancelSend(_ identifier: Int) -> Bool {
        state.withLock { $0.queues.cancelSend(identifier) } != nil
    }

    func cancelReceive(_ identifier: Int) -> Bool {
        state.withLock { $0.queues.cancelReceive(identifier) } != nil
    }

    /// Begins to close the WebSocket.
    ///
    /// - Returns: False if the WebSocket was not open yet and the task is not over, so that the task must be
    ///   cancelled like any other.
    func close(with code: Int, reason: Data?) -> Bool {
        let close =
            code == 0
            ? .empty
            : UInt16(exactly: code).map {
                WebSocketClose(sending: $0, reason: reason ?? Data())
            } ?? .empty
        if code != 0, close.code == nil {
            Log.sessions.warning(
                "A WebSocket is closed without a code: \(code) must not be sent (RFC 6455, section 7.4)."
            )
        }
        return change { state in
            state.close(
                close,
                Closing(
                    code: code, reason: reason,
                    error: URLErrors.error(
                        .cancelled, "The program has closed the WebSocket.", url: state.url)))
        }
    }

    /// Lets no further write restart the closing timeout, which may have begun (rule WS-17).
    func limitClosing() { state.withLock { $0.mayProlongClosing = false } }

    /// Changes the state and wakes the load; after the end of the task, calls the handlers of the operations
    /// instead.
    private func change<Result: Sendable>(_ change: @Sendable (inout State) -> Result) -> Result {
        let (result, load, isOver) = state.withLock { state in
            (change(&state), state.load, state.isOver)
        }
        if isOver { lateHandlers.call(takeLate()) } else { load?.wakeUp() }
        return result
    }

    // MARK: - The load

    /// The request as the load sends it.
    ///
    /// - Throws: If the request cannot open a WebSocket (rule WS-1), or its subprotocols cannot be offered.
    func sentRequest(_ request: URLRequest) throws(LoadFailure) -> URLRequest {
        guard WebSocketURL.isWebSocket(request.url), let sent = WebSocketURL.sent(request) else {
            throw .upgrade(
                .unsupportedURL, sentence: "A WebSocket is opened by a GET of a ws or wss URL.")
        }
        guard canOffer(with: request) else {
            throw .upgrade(
                .badURL,
                sentence: "The WebSocket's protocols cannot be offered: each is a token (RFC 9110, "
                    + "section 5.6.2), and named once.")
        }
        return sent
    }

    /// True if these subprotocols, and those that the request names, can be offered.
    private func canOffer(with request: URLRequest) -> Bool {
        var handshake = WebSocketHandshake(protocols: protocols)
        var fields = HeaderFields()
        if let own = request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") {
            fields.set(name: "Sec-WebSocket-Protocol", value: own)
        }
        do {
            try handshake.addFields(to: &fields)
            return true
        } catch { return false }
    }

    func makeHandshake() -> WebSocketHandshake {
        WebSocketHandshake(protocols: protocols, offersCompression: offersCompression)
    }

    /// Notes that the load has left its run loop. If that was because the loop's thread has ended, the
    /// handlers of waiting operations are released without a call, and async functions fail.
    func loadDidEnd() {
        let old = state.withLock { state in
            let waiting = state.isOver ? nil : state.takeAll()
            state.phase = .over(state.closing ?? Closing(error: URLError(.networkConnectionLost)))
            return (load: state.load.take(), waiting)
        }
        withExtendedLifetime(old) {}
        lateHandlers.release()
    }

    /// Ends the task, and calls the handlers of all waiting operations. On the delegate queue or the
    /// session's run loop.
    ///
    /// - Returns: The task's error.
    func end(_ error: (any Error)?) -> (any Error)? {
        lateHandlers.hold()
        let error = WebSocketURL.shown(error)
        let reported = state.withLock { $0.end(error) }
        for call in takeLate() { call() }
        return reported
    }

    /// Ends a task that was never begun. Any thread; the handlers of waiting operations are called later.
    func endBeforeStart(_ error: URLError) {
        state.withLock { $0.phase = .over(Closing(error: error)) }
        lateHandlers.call(takeLate())
    }

    // MARK: - After the end

    /// The calls of the handlers of all waiting operations: messages that have arrived are delivered,
    /// everything else fails.
    private func takeLate() -> [@Sendable () -> Void] {
        state.withLock { state in
            let error: any Error = state.closing?.error ?? URLError(.networkConnectionLost)
            var calls: [@Sendable () -> Void] = []
            while let (message, receiver) = state.queues.takePair() {
                calls.append { receiver(.success(message)) }
            }
            let (senders, receivers) = state.takeAll()
            for sender in senders { calls.append { sender(error) } }
            for receiver in receivers { calls.append { receiver(.failure(error)) } }
            return calls
        }
    }
}

extension WebSocketTaskState.State {
    typealias Closing = WebSocketTaskState.Closing

    var closing: Closing? {
        switch phase {
        case .connecting, .cancelledBeforeOpen, .open: nil
        case .ending(let closing), .over(let closing): closing
        }
    }

    /// True if an operation that is added now cannot be performed any more.
    var isEnding: Bool {
        switch phase {
        case .connecting, .cancelledBeforeOpen, .open: false
        case .ending, .over: true
        }
    }

    var isOpen: Bool {
        switch phase {
        case .connecting, .cancelledBeforeOpen, .over: false
        case .open, .ending: true
        }
    }

    var isOver: Bool { if case .over = phase { true } else { false } }

    /// Opens the WebSocket when the handshake has succeeded.
    ///
    /// - Returns: False if the program has cancelled the task.
    mutating func open() -> Bool {
        guard case .connecting = phase else { return false }
        phase = .open
        return true
    }

    /// Begins the end of an open WebSocket. The first call counts.
    mutating func beginEnding(_ closing: Closing) { if case .open = phase { phase = .ending(closing) } }

    /// Closes the WebSocket for the program.
    ///
    /// - Returns: False if it was not open yet and the task is not over; then it does not open any more.
    mutating func close(_ frame: WebSocketClose, _ closing: Closing) -> Bool {
        switch phase {
        case .connecting, .cancelledBeforeOpen:
            phase = .cancelledBeforeOpen
            return false
        case .open:
            queues.close = frame
            queues.dropMessages()
            phase = .ending(closing)
        // A WebSocket that ends already is not changed, but does not take longer.
        case .ending: mayProlongClosing = false
        case .over: break
        }
        return true
    }

    /// Ends the task.
    ///
    /// - Parameter error: The error of the load; nil if it succeeded.
    /// - Returns: The task's error.
    mutating func end(_ error: (any Error)?) -> (any Error)? {
        if isOpen {
            // Without a closing handshake, the resource timeout has ended the WebSocket.
            phase = .over(closing ?? Closing(code: 1006, error: error as? URLError ?? closedError))
            return error
        }
        let failure = Self.failureOfHandshake(error)
        phase = .over(closing ?? Closing(error: failure as? URLError ?? closedError))
        return failure ?? closing?.error
    }

    private var closedError: URLError {
        URLErrors.error(.networkConnectionLost, "The WebSocket is closed.", url: url)
    }

    /// A connection that ends before the response to the handshake has arrived is a bad response, as is a
    /// response that cannot be parsed (rule WS-4).
    private static func failureOfHandshake(_ error: (any Error)?) -> (any Error)? {
        guard let error = error as? URLError else { return error }
        let sentence: String
        switch error.code {
        case .networkConnectionLost:
            sentence = "The connection ended before the WebSocket handshake was answered."
        case .cannotParseResponse: sentence = error.localizedDescription
        default: return error
        }
        return URLErrors.error(.badServerResponse, sentence, url: error.failingURL, cause: error)
    }

    /// Removes the handlers of all operations that wait or are being performed.
    fileprivate mutating func takeAll() -> (
        senders: [WebSocketQueues.Completion], receivers: [WebSocketQueues.Receiver]
    ) {
        defer { late = [] }
        let begun = queues.endSending().map { [$0] } ?? []
        return (begun + queues.takeSenders() + late, queues.takeReceivers())
    }
}
