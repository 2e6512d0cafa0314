internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP

// What a task does that is a WebSocket. Its calls come where all calls of the task come.

extension TaskWork: WebSocketClient {
    /// The request as the engine loads it.
    ///
    /// - Throws: Where it is none of a WebSocket's (rule WS-1).
    func sentRequest(_ request: URLRequest) throws(URLError) -> URLRequest {
        guard let webSocket else { return request }
        let url = request.url
        guard WebSocketURL.isWebSocket(url), let sent = WebSocketURL.sent(request) else {
            throw URLErrors.error(
                .unsupportedURL, "A WebSocket is opened by a GET of a ws or wss URL.", url: url)
        }
        guard webSocket.canOffer(with: request) else {
            throw URLErrors.error(
                .badURL,
                "The WebSocket's protocols cannot be offered: each is a token (RFC 9110, section 5.6.2), and named once.",
                url: url)
        }
        return sent
    }

    /// The task is being cancelled, by a closing handshake: it goes on if it was suspended.
    func beginClosing() {
        let load = state.withLock { state in
            _ = state.life.cancel()
            return state.load
        }
        load?.resume()
    }

    func tellOpened(_ subprotocol: String?) {
        guard let all = addressees, let task = all.task as? URLSessionWebSocketTask else { return }
        tell(.opened, all) {
            $0.webSocket?.urlSession(all.session, webSocketTask: task, didOpenWithProtocol: subprotocol)
        }
    }

    func tellClosed(_ code: Int, _ reason: Data?) {
        guard let all = addressees, let task = all.task as? URLSessionWebSocketTask,
            let code = URLSessionWebSocketTask.CloseCode(rawValue: code)
        else { return }
        tell(.closed, all) {
            $0.webSocket?.urlSession(all.session, webSocketTask: task, didCloseWith: code, reason: reason)
        }
    }
}
