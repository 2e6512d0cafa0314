public import FoundationNetworking
public import RondoCore

// Creation of WebSocket tasks.

extension URLSession {
    /// Makes a WebSocket task for a ws or wss URL; see `webSocketTask(with:)` for requests.
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        webSocketTask(with: URLRequest(url: url))
    }

    /// Makes a WebSocket task for a ws or wss URL.
    ///
    /// - Parameter protocols: The subprotocols that are offered to the server, the preferred one first. If
    ///   one is no token, or is named twice, the task fails with `URLError.badURL` when it is resumed.
    public func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        making.webSocket(URLRequest(url: url), protocols: protocols)
    }

    /// Makes a WebSocket task for a GET request with a ws or wss URL. Its header fields are sent;
    /// Sec-WebSocket-Protocol names subprotocols to offer. With any other request the task fails with
    /// `URLError.unsupportedURL` when it is resumed (rule WS-1).
    public func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        making.webSocket(request, protocols: [])
    }
}

extension TaskMaking {
    func webSocket(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        let shared = WebSocketTaskState(protocols: protocols, schedule: session.engine.schedule)
        return made(
            URLSessionWebSocketTask(
                parts(TaskPlan(.webSocket, request, webSocket: shared), .delegate), shared))
    }
}
