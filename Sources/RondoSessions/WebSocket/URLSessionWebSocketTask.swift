internal import FoundationNetworking
public import RondoCore
internal import RondoHTTP

/// A WebSocket (RFC 6455): messages both ways over one connection.
///
/// The handshake is a load like any other, with redirects, challenges, cookies and proxies. After it silence is no fault: of the
/// timeouts only `timeoutIntervalForResource` holds, a week unless set (rule WS-6). The WebSocket is served
/// in the modes of its session and at no other time: reading, pongs, handlers and delegate calls wait for them. A server that
/// sends more than the program receives is held back once `maximumMessageSize` bytes wait. Any thread may use it.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable`: as its superclass.

    /// A message, sent or received. Further kinds are not to be expected.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }

    private let link: WebSocketLink

    /// - Parameter identifier: Of the task in whose place this one is.
    init(_ parts: Parts, _ link: WebSocketLink, identifier: Int? = nil) {
        self.link = link
        super.init(parts, identifier: identifier)
    }

    /// The program has let go of it, and its session does not hold it: the last calls of the WebSocket are made with another.
    deinit {
        let replacement = calls?.replacement(of: work) as? URLSessionWebSocketTask
        replacement?.cancel(with: .goingAway, reason: nil)
    }

    // MARK: - Settings

    /// Bytes of the longest message that is received, after decompression; 1,048,576 unless set. A longer one is not kept: the
    /// WebSocket is closed with 1009, and what waits fails with `URLError.dataLengthExceedsMaximum` (rule WS-11).
    open var maximumMessageSize: Int {
        get { link.maximumMessageSize }
        set { link.maximumMessageSize = newValue }
    }

    /// Whether permessage-deflate (RFC 7692) is offered; true unless set before the first `resume()` (rule WS-23).
    public var offersCompression: Bool {
        get { link.offersCompression }
        set { link.offersCompression = newValue }
    }

    // MARK: - Messages

    /// Sends a message behind those before it.
    ///
    /// - Parameter completionHandler: Called once, where the session's calls come: with nil when the kernel has taken all of
    ///   it, or with an error.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        _ = link.send(WebSocketMessage(message), completionHandler)
    }

    /// Sends a message, and returns when the kernel has taken all of it.
    ///
    /// A message of which nothing was sent is taken back when the Swift task is cancelled (rule WS-26).
    open func send(_ message: Message) async throws {
        let turn = AsyncTurn<Void>()
        try await turn.value { outcome in
            link.send(WebSocketMessage(message)) { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [link] in
            link.cancelSend($0)
        }
    }

    /// Receives the next whole message. Several calls are served in their order.
    ///
    /// - Parameter completionHandler: Called once, where the session's calls come.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        _ = link.receive { completionHandler($0.map(Message.init)) }
    }

    /// Receives the next whole message.
    ///
    /// When the Swift task is cancelled, it gives up its turn and throws `URLError.cancelled`; no message is lost by it
    /// (rule WS-26).
    open func receive() async throws -> Message {
        let turn = AsyncTurn<WebSocketMessage>()
        return Message(
            try await turn.value { outcome in
                link.receive(outcome)
            } cancel: { [link] in
                link.cancelReceive($0)
            })
    }

    /// Sends a ping.
    ///
    /// - Parameter pongReceiveHandler: Called once, where the session's calls come: with nil when its pong, or a later one's,
    ///   has come, or with an error.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        _ = link.ping(pongReceiveHandler)
    }

    /// Sends a ping, and returns when its pong has come.
    public func sendPing() async throws {
        let turn = AsyncTurn<Void>()
        try await turn.value { outcome in
            link.ping { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [link] in
            link.cancelSend($0)
        }
    }

    // MARK: - The end

    /// Sends what was handed over before, then a close frame; waits for the server's, at most two seconds of running time, and
    /// closes the connection (rules WS-17 and WS-18).
    ///
    /// - Parameters:
    ///   - closeCode: One that must not be sent, `invalid` among them, makes a close frame without one.
    ///   - reason: Cut to 123 bytes.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard link.close(with: closeCode.rawValue, reason: reason) else { return super.cancel() }
        work.beginClosing()
    }

    /// Closes the WebSocket by a close frame without code and reason; ends the task if it was not open yet.
    open override func cancel() { cancel(with: .invalid, reason: nil) }

    /// Why it was closed; `invalid` as long as it is not.
    open var closeCode: CloseCode { CloseCode(rawValue: link.closing.code) ?? .invalid }

    /// What the close frame said beside the code.
    open var closeReason: Data? { link.closing.reason }
}

extension URLSessionWebSocketTask.Message {
    init(_ message: WebSocketMessage) {
        switch message {
        case .text(let text): self = .string(text)
        case .binary(let data): self = .data(data)
        }
    }
}

extension WebSocketMessage {
    fileprivate init(_ message: URLSessionWebSocketTask.Message) {
        switch message {
        case .string(let text): self = .text(text)
        case .data(let data): self = .binary(data)
        }
    }
}
