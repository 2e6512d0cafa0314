internal import FoundationNetworking
internal import RondoConnections
public import RondoCore
internal import RondoHTTP

/// A WebSocket (RFC 6455): messages in both directions over one connection.
///
/// The handshake is loaded like any request, with redirects, challenges, cookies and proxies. After the
/// handshake the only timeout is `timeoutIntervalForResource`, a week unless set (rule WS-6). The WebSocket
/// is served only in the modes of its session: reading, pongs, handlers and delegate calls wait for them
/// (rule WS-25). A server that sends more than the program receives is held back once `maximumMessageSize`
/// bytes wait (rule WS-10). Any thread may use it.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable` for the same reason as its superclass.

    /// A message, sent or received.
    public enum Message: Sendable {
        /// A binary message.
        case data(Data)
        /// A text message.
        case string(String)
    }

    private let shared: WebSocketTaskState

    /// - Parameter identifier: The identifier of the task whose place this one takes; nil for a new
    ///   WebSocket.
    init(_ parts: Parts, _ shared: WebSocketTaskState, identifier: Int? = nil) {
        self.shared = shared
        super.init(parts, identifier: identifier)
    }

    /// Makes a WebSocket without a session: its operations fail with `URLError.cancelled`. For classes that
    /// replace WebSockets in tests.
    @available(*, deprecated, message: "WebSocket tasks are made by a session.")
    public override init() {
        shared = WebSocketTaskState(protocols: [], schedule: .queue(DelegateQueue()))
        super.init()
        shared.endBeforeStart(URLErrors.error(.cancelled, "The WebSocket has no session.", url: nil))
    }

    /// If the program releases a running WebSocket that its session does not retain, a replacement closes it
    /// and gets its last calls (rule WS-27).
    deinit {
        let replacement = calls?.replacement(of: work) as? URLSessionWebSocketTask
        replacement?.cancel(with: .goingAway, reason: nil)
    }

    // MARK: - Settings

    /// The length in bytes of the longest message that is received, after decompression; 1,048,576 unless
    /// set. A longer message is dropped: the WebSocket is closed with 1009, and waiting operations fail with
    /// `URLError.dataLengthExceedsMaximum` (rule WS-11).
    open var maximumMessageSize: Int {
        get { shared.maximumMessageSize }
        set { shared.maximumMessageSize = newValue }
    }

    /// Whether permessage-deflate (RFC 7692) is offered; true unless set before the first `resume()`
    /// (rule WS-23).
    public var offersCompression: Bool {
        get { shared.offersCompression }
        set { shared.offersCompression = newValue }
    }

    // MARK: - Messages

    /// Sends a message, after those sent before (rule WS-8).
    ///
    /// - Parameter completionHandler: Called once, on the delegate queue or the session's run loop: with
    ///   nil when the kernel has taken the whole message, or with an error.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        _ = shared.send(WebSocketMessage(message), completionHandler)
    }

    /// Sends a message, and returns when the kernel has taken all of it.
    ///
    /// If the Swift task is cancelled, a message of which nothing was sent is withdrawn (rule WS-26).
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    open nonisolated(nonsending) func send(_ message: Message) async throws {
        try await OperationWait<Void>.value { outcome in
            shared.send(WebSocketMessage(message)) { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [shared] in
            shared.cancelSend($0)
        }
    }

    /// Receives the next whole message. Waiting calls are served in order (rule WS-9).
    ///
    /// - Parameter completionHandler: Called once, on the delegate queue or the session's run loop.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        _ = shared.receive { completionHandler($0.map(Message.init)) }
    }

    /// Receives the next whole message.
    ///
    /// If the Swift task is cancelled, the call gives up its place and no message is lost (rule WS-26).
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    open nonisolated(nonsending) func receive() async throws -> Message {
        Message(
            try await OperationWait<WebSocketMessage>.value { outcome in
                shared.receive(outcome)
            } cancel: { [shared] in
                shared.cancelReceive($0)
            })
    }

    /// Sends a ping (rule WS-16).
    ///
    /// - Parameter pongReceiveHandler: Called once, on the delegate queue or the session's run loop: with
    ///   nil when the pong, or that of a later ping, has arrived, or with an error.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        _ = shared.ping(pongReceiveHandler)
    }

    /// Sends a ping, and returns when its pong, or that of a later ping, has arrived.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    public nonisolated(nonsending) func sendPing() async throws {
        try await OperationWait<Void>.value { outcome in
            shared.ping { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [shared] in
            shared.cancelSend($0)
        }
    }

    // MARK: - The end

    /// Closes the WebSocket: sends earlier messages, then a close frame, waits for the server's close frame
    /// for at most two seconds of running time, and closes the connection (rules WS-17 and WS-18). If the
    /// WebSocket is not open yet, ends the task: earlier messages are not sent.
    ///
    /// Earlier messages may take long. The connection is closed within two seconds after a further call, or
    /// after the session's `invalidateAndCancel()`.
    ///
    /// - Parameters:
    ///   - closeCode: With `invalid`, or a code that must not be sent (RFC 6455 §7.4), the close frame has
    ///     neither code nor reason.
    ///   - reason: Cut to 123 bytes.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard shared.close(with: closeCode.rawValue, reason: reason) else { return super.cancel() }
        work.beginClosing()
    }

    /// Closes the WebSocket by a close frame without code and reason; see `cancel(with:reason:)`.
    open override func cancel() { cancel(with: .invalid, reason: nil) }

    /// The code with which the WebSocket was closed; `invalid` as long as it is not closed.
    open var closeCode: CloseCode { shared.closing.flatMap { CloseCode(rawValue: $0.code) } ?? .invalid }

    /// The reason in the close frame; nil if there is none.
    open var closeReason: Data? { shared.closing?.reason }
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
