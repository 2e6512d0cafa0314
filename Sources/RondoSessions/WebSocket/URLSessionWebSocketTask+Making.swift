public import FoundationNetworking
public import RondoCore

// How a session makes WebSocket tasks.

extension URLSession {
    /// A WebSocket to a ws or wss URL.
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        webSocketTask(with: URLRequest(url: url))
    }

    /// A WebSocket to a ws or wss URL.
    ///
    /// - Parameter protocols: Offered to the server, the preferred one first.
    public func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        making.webSocket(URLRequest(url: url), protocols: protocols)
    }

    /// A WebSocket. The request is a GET of a ws or wss URL; its fields go along, and what Sec-WebSocket-Protocol names is
    /// offered. Another one fails with `URLError.unsupportedURL` when the task is resumed (rule WS-1).
    public func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        making.webSocket(request, protocols: [])
    }
}

extension TaskMaking {
    func webSocket(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        let link = WebSocketLink(protocols: protocols, driver: session.engine.driver)
        return made(
            URLSessionWebSocketTask(parts(TaskPlan(.webSocket, request, webSocket: link), .delegate), link))
    }
}
