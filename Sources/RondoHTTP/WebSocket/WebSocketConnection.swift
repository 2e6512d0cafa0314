// One WebSocket connection after its handshake (RFC 6455): turns messages into bytes, and received bytes into
// events. It has no socket and no clock; the end of the connection is an input like any other.
//
// `receive` only stores bytes, and `nextEvent` returns one event, so nothing is read or decompressed before
// the receiver can take it. The connection stores the bytes that were received and not read, an unfinished
// message up to its limit, one owed pong (rule WS-15) and, if compression was agreed on, two states of zlib,
// some 300 KiB, made on first use. An error is a state that is never left; the close frame that belongs to it
// is owed like an answer.

/// An event on a connection.
package enum WebSocketEvent: Sendable, Equatable {
    /// A complete message, however many frames carried it.
    case message(WebSocketMessage)
    /// A pong is owed: call `sendAnswers(into:)`.
    case ping([UInt8])
    case pong([UInt8])
    /// The other end's close frame; only `closed` can follow. Unless it answers our own close frame, an
    /// answer is owed.
    case close(WebSocketClose)
    /// There is no event before more bytes or the end of the connection have been received.
    case needMoreData
    /// Both ends have closed, or the connection has ended after this end closed: bytes received from now on
    /// are ignored (WS-22).
    case closed
}

/// One end of a WebSocket connection.
package struct WebSocketConnection: ~Copyable, Sendable {
    private var state = WebSocketState()
    private var reader: WebSocketReader
    private var writer: WebSocketWriter
    private var received = ByteQueue()
    private var hasPeerEnded = false
    /// The payload of the last ping, if it has not been answered.
    private var unansweredPing: [UInt8]?
    private var outgoing: WebSocketWriter.Outgoing?

    /// The limits, which apply from the next frame on.
    package var limits: WebSocketLimits

    /// - Parameters:
    ///   - role: The end that this object is.
    ///   - compression: The parameters agreed on in the handshake.
    ///   - generator: Generates the masking keys, which must not be predictable.
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

    /// Stores bytes for `nextEvent()`, unless they would be ignored.
    package mutating func receive(_ bytes: some Sequence<UInt8>) {
        switch state.reading {
        case .messages, .closeFrame: received.append(bytes)
        case .nothing, .failed: break
        }
    }

    /// Tells that the other end closed its side of the connection: no bytes follow those passed in before.
    package mutating func receiveEnd() { hasPeerEnded = true }

    /// The next event. An error is thrown again by each further call.
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

    /// Discards everything received and everything being sent, because neither matters any more.
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

    /// Starts a message; `sendNextFrame` then makes its frames.
    package mutating func startSending(_ message: WebSocketMessage) throws(WebSocketError) {
        guard isOpen else { throw .local(.notOpen) }
        guard outgoing == nil else { throw .local(.messageInProgress) }
        outgoing = writer.start(message, limits: limits)
    }

    /// Whether a message was started and not all of its frames have been made. False once either end has
    /// closed, since the rest of a message is then not sent.
    package var isSendingMessage: Bool { outgoing != nil }

    /// Appends the next frame of the started message. Other frames may be sent before it.
    ///
    /// - Returns: Whether it was the last frame.
    package mutating func sendNextFrame(into output: inout [UInt8]) throws(WebSocketError) -> Bool {
        guard isOpen else { throw .local(.notOpen) }
        guard var message = outgoing else { preconditionFailure("no message was started: startSending(_:)") }
        let isLast = writer.writeFrame(of: &message, limits: limits, into: &output)
        outgoing = isLast ? nil : message
        return isLast
    }

    /// Drops the message whose first frame was made last, and is not sent.
    package mutating func withdrawMessage() {
        outgoing = nil
        writer.forgetMessages()
    }

    /// Appends a ping with a payload of at most 125 bytes.
    package mutating func send(ping payload: [UInt8], into output: inout [UInt8]) throws(WebSocketError) {
        guard isOpen else { throw .local(.notOpen) }
        guard payload.count <= WebSocketFrameHeader.maximumControlLength else {
            throw .local(.longPing(payload.count))
        }
        writer.writeControl(.ping, payload, into: &output)
    }

    /// Appends a close frame. Only pongs can be sent after it, and messages received after it are ignored.
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

    /// Appends the owed answers: a pong for the last ping (§5.5.3), and a close frame that answers the other
    /// end's or gives the reason why the connection has failed.
    package mutating func sendAnswers(into output: inout [UInt8]) {
        if let payload = unansweredPing {
            unansweredPing = nil
            writer.writeControl(.pong, payload, into: &output)
        }
        if let close = state.owedClose { writeClose(close, into: &output) }
    }
}
