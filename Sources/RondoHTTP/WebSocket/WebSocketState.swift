// What either end may still send (RFC 6455 §1.4, §5.5.1, §7.1). No bytes here, and no grammar.
//
// The closing handshake is one close frame in each direction. After its own close frame an end sends no more
// messages, but it reads until it receives the other end's; after both, nothing is read. A failure closes
// both directions at once: our close frame is owed, if the failure has one, and the other end's is not
// awaited. A failure is a state that is never left. The layer above, which has a clock, decides how long to
// wait.

/// The state of one WebSocket connection: what each end may still send.
struct WebSocketState: Sendable {
    private enum Sending: Sendable {
        case open
        /// A close frame has been sent.
        case closed
    }

    private enum Receiving: Sendable {
        case open
        /// The other end's close frame was received, or the connection has ended after our own close frame.
        case closed(WebSocketClose?)
        case failed(WebSocketError)
    }

    /// The use of bytes that have been received.
    enum Reading: Equatable {
        case messages
        /// We have closed: the other end's close frame is awaited, and messages are skipped.
        case closeFrame
        case nothing
        case failed(WebSocketError)
    }

    private var sending = Sending.open
    private var receiving = Receiving.open

    // MARK: State

    var reading: Reading {
        switch (receiving, sending) {
        case (.open, .open): .messages
        case (.open, .closed): .closeFrame
        case (.closed, _): .nothing
        case (.failed(let error), _): .failed(error)
        }
    }

    /// Whether messages, pings and a close frame of our own may be sent.
    var isOpen: Bool {
        if case .open = receiving, case .open = sending { true } else { false }
    }

    /// The close frame that answers the other end's, or by which we fail the connection; nil if none is owed.
    var owedClose: WebSocketClose? {
        guard case .open = sending else { return nil }
        switch receiving {
        case .open: return nil
        case .closed(let close): return close?.answer
        case .failed(let error): return error.closeCode.map { WebSocketClose(sending: $0) }
        }
    }

    // MARK: Inputs

    /// Notes that a close frame is sent, on our own initiative or because it is owed.
    mutating func sendClose() { sending = .closed }

    mutating func receiveClose(_ close: WebSocketClose) { receiving = .closed(close) }

    /// Notes that the connection has ended and everything before has been read.
    mutating func receiveEnd(isInsideMessage: Bool) throws(WebSocketError) {
        switch sending {
        case .open: throw .peer(isInsideMessage ? .endedInsideMessage : .endedWithoutClose)
        case .closed: receiving = .closed(nil)
        }
    }

    mutating func fail(_ error: WebSocketError) { receiving = .failed(error) }
}
