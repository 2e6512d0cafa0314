internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The upgrade of a load to a WebSocket: checks the handshake, reads bytes from the channel, moves messages
/// between the protocol and the queues of the task, and ends the WebSocket. Its sender writes.
///
/// `@unchecked Sendable`: used only inside the gate of its load.
final class WebSocketUpgrade: Upgrade, @unchecked Sendable {
    private enum Phase {
        case handshake
        case open
        /// The program closes: earlier messages are sent, then the close frame, and the server's close frame
        /// is awaited.
        case closing
        /// Nothing more is sent; the server is expected to end the connection (rule WS-22). The failure is
        /// the outcome of the load; nil if the WebSocket was closed by a close frame.
        case waitingForEnd(LoadFailure?)
        case ended
    }

    /// The closing timeout in seconds: for the closing handshake, and for the server to end the connection
    /// (rules WS-17 and WS-22).
    static let closingTime = 2.0
    /// The most bytes that one pass reads. The limit leaves time for other tasks.
    private static let readAtOnce = 64 * 1024

    private let shared: WebSocketTaskState
    private var handshake: WebSocketHandshake
    private var connection = WebSocketConnection(.client)
    private var sender: WebSocketSender
    private var subprotocol: String?
    private var channel: SocketChannel?
    private var phase = Phase.handshake
    private var hasStoppedReading = false
    private var sawEnd = false
    private var timer: ScheduleTimer?

    init(_ shared: WebSocketTaskState) {
        self.shared = shared
        sender = WebSocketSender(shared)
        handshake = shared.makeHandshake()
    }

    private var load: (any UpgradeOwner)? { shared.state.withLock { $0.load } }

    // MARK: - Handshake

    func addFields(to fields: inout HeaderFields) {
        handshake = shared.makeHandshake()
        do {
            try handshake.addFields(to: &fields)
        } catch {
            // `sentRequest(_:)` has checked this before the task began. Without the fields the handshake is
            // refused.
            Log.sessions.warning("A WebSocket handshake cannot be made: \(error)")
        }
    }

    func refusal(of head: ResponseHead, for load: any UpgradeOwner) -> String? {
        do {
            let agreement = try handshake.agreement(in: head)
            subprotocol = agreement.subprotocol
            connection = WebSocketConnection(.client, compression: agreement.compression)
            shared.state.withLock { $0.load = load }
            return nil
        } catch {
            return error.description
        }
    }

    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer) {
        // After a cancellation no call is begun: the load, which will learn of it, could drop the call with
        // its handler.
        guard shared.state.withLock({ $0.open() }) else {
            channel.wantsRead = false
            return
        }
        self.channel = channel
        phase = .open
        connection.receive(received)
        let client = shared.state.withLock { $0.client }
        load?.call("didOpenWithProtocol", size: 0) { [subprotocol] in client?.tellOpened(subprotocol) }
        serve()
    }

    // MARK: - Upgrade

    func serve() {
        guard isServed else { return }
        let (closes, isTimeUp) = shared.state.withLock { ($0.queues.close != nil, $0.isTimeUp) }
        if isTimeUp { return giveUp() }
        if closes, case .open = phase { phase = .closing }
        moveMessages()
    }

    func becameReadable() {
        guard isServed, !hasStoppedReading, !sawEnd, let channel else { return }
        withUnsafeTemporaryAllocation(byteCount: Self.readAtOnce, alignment: 16) { buffer in
            do throws(ChannelError) {
                switch try channel.read(into: buffer) {
                case .bytes(let count):
                    connection.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                case .wouldBlock: return
                case .end, .truncated: receiveEnd()
                }
            } catch {
                receiveEnd()
            }
        }
        moveMessages()
    }

    func becameWritable() { if isServed { moveMessages() } }

    func failed(_ error: ChannelError) {
        guard isServed else { return }
        receiveEnd()
        moveMessages()
    }

    func stopReading() {
        hasStoppedReading = true
        channel?.wantsRead = false
    }

    func startReading() {
        guard hasStoppedReading else { return }
        hasStoppedReading = false
        if isServed { moveMessages() }
    }

    private var isServed: Bool {
        switch phase {
        case .handshake, .ended: false
        case .open, .closing, .waitingForEnd: true
        }
    }

    private func receiveEnd() {
        sawEnd = true
        connection.receiveEnd()
    }

    private func moveMessages() {
        readEvents()
        guard isServed else { return }
        handOver()
        flush()
        guard isServed else { return }
        if case .waitingForEnd = phase, sawEnd { return finish() }
        limitClosing()
        channel?.wantsRead = !hasStoppedReading && !sawEnd && takesBytes
    }

    /// True if more may be read. In every phase but `open`, what arrives is not kept.
    private var takesBytes: Bool {
        if case .open = phase { shared.state.withLock { $0.queues.takesMessages } } else { true }
    }

    // MARK: - Receiving

    private func readEvents() {
        connection.limits.maximumMessageSize = shared.maximumMessageSize
        while !hasStoppedReading {
            switch phase {
            case .handshake, .waitingForEnd, .ended: return
            case .open, .closing: break
            }
            if !takesBytes {
                handOver()
                guard !hasStoppedReading, takesBytes else { return }
            }
            do throws(WebSocketError) {
                switch try connection.nextEvent() {
                case .message(let message): receive(message)
                case .ping: sendPong()
                case .pong(let payload): receive(pong: payload)
                case .close(let close): return receive(close)
                case .needMoreData: return
                // The server has ended the connection without a close frame, after that of the program.
                case .closed: return endClosed()
                }
            } catch {
                return fail(error)
            }
        }
    }

    private func receive(_ message: WebSocketMessage) {
        guard case .open = phase else { return }
        shared.state.withLock { $0.queues.add(message) }
        handOver()
        // What the program sends on getting a message goes before later frames are read: one of them may be
        // the end.
        if canWrite { flush() }
    }

    /// Writes pongs for pings that arrived together at once. While the socket takes no bytes, only the last
    /// ping waits for its pong (rule WS-15).
    private func sendPong() {
        guard canWrite, connection.hasAnswers else { return }
        if sender.bufferPong(of: &connection) { flush() }
    }

    private var canWrite: Bool {
        guard let channel else { return false }
        return !channel.wantsWrite && !sender.hasEnded
    }

    private func receive(pong payload: [UInt8]) {
        guard payload.count == 8 else { return }
        let identifier = payload.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        guard let identifier = Int(exactly: identifier) else { return }
        for completion in shared.state.withLock({ $0.queues.takePings(upTo: identifier) }) {
            load?.call("pong", size: 0) { completion(nil) }
        }
    }

    private func receive(_ close: WebSocketClose) {
        if case .open = phase {
            let code = Int(close.code ?? 1005)
            end(
                with: code, reason: close.reason.isEmpty ? nil : close.reason,
                .networkConnectionLost, "The server has closed the WebSocket (\(code)).")
        }
        endClosed()
    }

    /// Delivers messages, and fails operations that can no longer be performed.
    private func handOver() {
        while !hasStoppedReading, let load,
            let (message, receiver) = shared.state.withLock({ $0.queues.takePair() })
        {
            load.call("receive", size: message.size) { receiver(.success(message)) }
        }
        let isClosing = if case .closing = phase { true } else { false }
        let isOpen = if case .open = phase { true } else { false }
        let isLost = sender.hasEnded
        let (error, senders, receivers) = shared.state.withLock { state in
            guard let error = state.closing?.error else {
                // Messages of the server may still be taken, but nothing can be sent to it any more.
                return (
                    isLost ? WebSocketSender.lost(state.url) : nil, isLost ? state.queues.takeSenders() : [],
                    [WebSocketQueues.Receiver]()
                )
            }
            // The program may have closed the WebSocket since `isClosing` was computed: its earlier messages
            // go before its close frame (rule WS-18).
            let mayBeSent = isClosing || isOpen && state.queues.close != nil
            let senders = (mayBeSent ? [] : state.queues.takeSenders()) + state.late
            state.late = []
            // Receivers wait as long as there is a message for them.
            return (error, senders, state.queues.hasMessages ? [] : state.queues.takeReceivers())
        }
        guard let error, let load else { return }
        for sender in senders { load.call("send", size: 0) { sender(error) } }
        for receiver in receivers { load.call("receive", size: 0) { receiver(.failure(error)) } }
    }

    private func flush() {
        guard let channel else { return }
        let canSend = sender.flush(&connection, to: channel)
        // Reading goes on: the server may have sent more before it closed. The end is reported after that.
        if !canSend { handOver() }
    }

    // MARK: - The end

    /// Sets the error for waiting and later operations. The first call counts.
    private func end(
        with code: Int, reason: Data?, _ error: URLError.Code,
        _ sentence: String
    ) {
        shared.state.withLock { state in
            state.beginEnding(
                .init(code: code, reason: reason, error: URLErrors.error(error, sentence, url: state.url)))
        }
    }

    /// Reports that the WebSocket was closed by a close frame, and waits for the end of the connection.
    private func endClosed() {
        waitForEnd(nil)
        let (closing, client) = shared.state.withLock { ($0.closing, $0.client) }
        guard let closing else { return }
        load?.call("didCloseWith", size: 0) { client?.tellClosed(closing.code, closing.reason) }
    }

    private func fail(_ error: WebSocketError) {
        // Once the program has closed the WebSocket, perhaps in a call of this pass, only the end counts
        // (rule WS-18).
        if shared.state.withLock({ $0.queues.close != nil }) { return endClosed() }
        let code = Self.urlErrorCode(error)
        end(with: Int(error.closeCode ?? 1006), reason: nil, code, error.description)
        waitForEnd(.upgrade(code, sentence: error.description))
    }

    /// Sends the close frame that is owed, and fails all operations that wait.
    private func waitForEnd(_ failure: LoadFailure?) {
        phase = .waitingForEnd(failure)
        flush()
        sender.failUnfinished()
        handOver()
    }

    private static func urlErrorCode(_ error: WebSocketError) -> URLError.Code {
        switch error {
        case .peer(.messageTooLong): .dataLengthExceedsMaximum
        case .peer(.endedWithoutClose), .peer(.endedInsideMessage): .networkConnectionLost
        case .peer: .badServerResponse
        case .local: .unknown
        }
    }

    /// Starts the closing timeout, unless the task is suspended: its close frame may not have been sent.
    /// While `mayProlongClosing` is true, each write of bytes up to the end of the close frame restarts it
    /// (rule WS-17).
    private func limitClosing() {
        switch phase {
        case .handshake, .open, .ended: return
        case .closing, .waitingForEnd: break
        }
        if sender.takeProgress(), shared.state.withLock({ $0.mayProlongClosing }), let timer = timer.take() {
            timer.invalidate()
            shared.state.withLock { $0.isTimeUp = false }
        }
        guard timer == nil, let load, load.maySend else { return }
        timer = load.timer(after: Self.closingTime) { [shared] in
            let load = shared.state.withLock { state in
                state.isTimeUp = true
                return state.load
            }
            load?.wakeUp()
        }
    }

    /// Ends the connection when the closing timeout has expired.
    private func giveUp() {
        sender.end()
        if case .closing = phase { endClosed() }
        finish()
    }

    private func finish() {
        guard case .waitingForEnd(let failure) = phase else { return }
        phase = .ended
        timer.take()?.invalidate()
        sender.failCurrent()
        handOver()
        load?.endUpgrade(failure)
    }

    deinit { timer?.invalidate() }
}
