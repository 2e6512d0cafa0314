public import RondoCore

/// The delegate of WebSocket tasks, in addition to the methods of `URLSessionTaskDelegate`. All methods are
/// optional.
///
/// Methods are called on the session's delegate queue, or on the thread of its run loop.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The handshake has succeeded; this comes before everything that was sent or received (rule WS-5).
    ///
    /// - Parameter protocol: The subprotocol that the server chose from those offered; nil if it chose
    ///   none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The WebSocket was closed by a close frame of the server (rule WS-19) or of the program (rule WS-18).
    ///
    /// - Parameters:
    ///   - closeCode: The code of the close frame.
    ///   - reason: At most 123 bytes, UTF-8 if the server sent them; nil if there are none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

// The default implementations, which make the methods optional (rule US-5).
extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        noteDefault(.opened)
    }

    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        noteDefault(.closed)
    }
}
