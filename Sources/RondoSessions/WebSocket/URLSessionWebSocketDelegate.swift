public import RondoCore

/// Is told of WebSocket tasks, beside what `URLSessionTaskDelegate` is told; all methods are optional.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The handshake has succeeded (rule WS-5).
    ///
    /// - Parameter protocol: The one that the server chose of those offered; nil: none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The WebSocket was closed by a close frame, the server's (rule WS-19) or the program's (rule WS-18).
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

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
