// One WebSocket connection after its handshake (RFC 6455): what this end says turned into bytes, what it hears into
// events. It holds no socket and no clock; the end of the connection is an input like any other.
//
// `receive` only stores bytes, `nextEvent` gives one event: so nothing is read, and nothing decompressed, before its
// receiver can take it. The connection keeps the bytes that were received and not read, an unfinished message up to its
// limit, one pong that is owed (rule WS-15), and where compression was agreed on the two states of zlib, some 300 KiB, made
// when they are first needed. An error is a state that is never left; the close frame that belongs to it is owed as an
// answer is.

/// What happened on a connection.
package enum WebSocketEvent: Sendable, Equatable {
    /// A whole message, however many frames carried it.
    case message(WebSocketMessage)
    /// The pong is owed: `sendAnswers(into:)`.
    case ping([UInt8])
    case pong([UInt8])
    /// The other end's close frame; the last event but `closed`. Unless it answers our own, an answer is owed.
    case close(WebSocketClose)
    /// Nothing more can be told before more bytes or the end of the connection have come.
    case needMoreData
    /// Both ends have closed, or have left after this one closed: nothing that comes is looked at (WS-22).
    case closed
}

/// One end of a WebSocket connection.
package struct WebSocketConnection: ~Copyable, Sendable {
    private var state = WebSocketState()
    private var reader: WebSocketReader
    private var writer: WebSocketWriter
    private var received = ByteQueue()
    private var hasPeerEnded = false
    /// The payload of the ping that came last, if it is not answered.
    private var unansweredPing: [UInt8]?
    private var outgoing: WebSocketWriter.Outgoing?

    /// They hold from the next frame on.
    package var limits: WebSocketLimits

    /// - Parameters:
    ///   - role: Which end this is.
    ///   - compression: What the handshake agreed on.
    ///   - generator: Where the keys of masks come from; they must not be predictable.
    package init(
        _ role: WebSocketRole = .client, compression: WebSocketCompression? = nil,
        limits: WebSocketLimits = WebSocketLimits(),
        generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        let peer: WebSocketRole =
            switch role {
            case .client: .server
            case .server: .client
            }
        reader = WebSocketReader(role, compression: compression?.sender(peer))
        writer = WebSocketWriter(role, compression: compression?.sender(role), generator: generator)
        self.limits = limits
    }

    /// Whether messages, pings and a close frame may be sent: neither end has closed, and nothing has failed.
    package var isOpen: Bool { state.isOpen }

    // MARK: Receiving

    /// Stores bytes for `nextEvent()`, but for those that nothing would look at.
    package mutating func receive(_ bytes: some Sequence<UInt8>) {
        switch state.reading {
        case .messages, .closeFrame: received.append(bytes)
        case .nothing, .failed: break
        }
    }

    /// The other end closed its side of the connection; no bytes will follow those handed in before.
    package mutating func receiveEnd() { hasPeerEnded = true }

    /// The next thing that happened. An error comes again at each call.
    package mutating func nextEvent() throws(WebSocketError) -> WebSocketEvent {
        switch state.reading {
        case .failed(let error): throw error
        case .nothing: return .closed
        case .messages, .closeFrame: break
        }
        do {
            return try readEvent()
        } catch {
            state.fail(error)
            stopReading()
            throw error
        }
    }

    private mutating func readEvent() throws(WebSocketError) -> WebSocketEvent {
        let unread = received.unread
        var consumed = 0
        let output = try unread.withUnsafeBufferPointer { (input) throws(WebSocketError) in
            try reader.next(
                in: UnsafeRawBufferPointer(input), consumed: &consumed, limit: limits.maximumMessageSize)
        }
        received.consume(consumed)
        switch output {
        case .message(let message): return .message(message)
        case .ping(let payload):
            unansweredPing = payload
            return .ping(payload)
        case .pong(let payload): return .pong(payload)
        case .close(let close):
            state.receiveClose(close)
            stopReading()
            return .close(close)
        case .needMoreData:
            guard hasPeerEnded else { return .needMoreData }
            try state.receiveEnd(isInsideMessage: reader.isInsideMessage)
            stopReading()
            return .closed
        }
    }

    /// Nothing that has come, or is being sent, matters any more.
    private mutating func stopReading() {
        received = ByteQueue()
        reader.skipMessages()
        unansweredPing = nil
        outgoing = nil
    }

    // MARK: Sending

    /// Appends a message to `output`, in one frame, or in several if it is long.
    package mutating func send(
        _ message: WebSocketMessage, into output: inout [UInt8]
    ) throws(WebSocketError) {
        try startSending(message)
        while try !sendNextFrame(into: &output) {}
    }

    /// Starts a message, which `sendNextFrame` makes frames of.
    package mutating func startSending(_ message: WebSocketMessage) throws(WebSocketError) {
        guard isOpen else { throw .local(.notOpen) }
        guard outgoing == nil else { throw .local(.messageInProgress) }
        outgoing = writer.start(message, limits: limits)
    }

    /// A message was started, and not all of its frames have been made. False too once either end has closed: the rest
    /// of a message is not sent then.
    package var isSendingMessage: Bool { outgoing != nil }

    /// Appends the next frame of the message that was started. Other frames may be sent before it.
    ///
    /// - Returns: Whether it was the last.
    package mutating func sendNextFrame(into output: inout [UInt8]) throws(WebSocketError) -> Bool {
        guard isOpen else { throw .local(.notOpen) }
        guard var message = outgoing else { preconditionFailure("no message was started: startSending(_:)") }
        let isLast = writer.writeFrame(of: &message, limits: limits, into: &output)
        outgoing = isLast ? nil : message
        return isLast
    }

    /// Appends a ping with a payload of at most 125 bytes.
    package mutating func send(ping payload: [UInt8], into output: inout [UInt8]) throws(WebSocketError) {
        guard isOpen else { throw .local(.notOpen) }
        guard payload.count <= WebSocketFrameHeader.maximumControlLength else {
            throw .local(.longPing(payload.count))
        }
        writer.writeControl(.ping, payload, into: &output)
    }

    /// Appends a close frame. Nothing but pongs can be sent after it, and the messages that still come are passed over.
    package mutating func send(close: WebSocketClose, into output: inout [UInt8]) throws(WebSocketError) {
        guard isOpen else { throw .local(.notOpen) }
        writeClose(close, into: &output)
        reader.skipMessages()
    }

    private mutating func writeClose(_ close: WebSocketClose, into output: inout [UInt8]) {
        outgoing = nil
        state.sendClose()
        writer.writeControl(.close, close.payload, into: &output)
    }

    // MARK: Answers

    /// Whether a pong or a close frame is owed. It may be sent between the frames of a message.
    package var hasAnswers: Bool { unansweredPing != nil || state.owedClose != nil }

    /// Appends the answers that are owed: a pong for the last ping (§5.5.3), and a close frame that answers the other end's
    /// or says why the connection has failed.
    package mutating func sendAnswers(into output: inout [UInt8]) {
        if let payload = unansweredPing {
            unansweredPing = nil
            writer.writeControl(.pong, payload, into: &output)
        }
        if let close = state.owedClose { writeClose(close, into: &output) }
    }
}
