internal import FoundationNetworking
internal import RondoCore

/// ws and wss are http and https by other names (RFC 6455 §3): so the engine loads them.
enum WebSocketURL {
    /// The request as it is sent; nil: it is none of a WebSocket's (rule WS-1).
    static func sent(_ request: URLRequest) -> URLRequest? {
        guard (request.httpMethod ?? "GET") == "GET", let url = request.url else { return nil }
        switch url.scheme?.lowercased() {
        case "ws": return with(request, url, scheme: "http")
        case "wss": return with(request, url, scheme: "https")
        // Where a redirect leads, and what a delegate makes of it (rule WS-3).
        case "http", "https": return request
        default: return nil
        }
    }

    /// Whether a task may begin with it.
    static func isWebSocket(_ url: URL?) -> Bool {
        let scheme = url?.scheme?.lowercased()
        return scheme == "ws" || scheme == "wss"
    }

    /// The request as the program sees it.
    static func shown(_ request: URLRequest) -> URLRequest {
        guard let url = request.url else { return request }
        switch url.scheme?.lowercased() {
        case "http": return with(request, url, scheme: "ws") ?? request
        case "https": return with(request, url, scheme: "wss") ?? request
        default: return request
        }
    }

    private static func with(_ request: URLRequest, _ url: URL, scheme: String) -> URLRequest? {
        let text = url.absoluteString
        guard let colon = text.firstIndex(of: ":") else { return nil }
        var changed = request
        changed.url = URL(string: scheme + text[colon...])
        return changed.url == nil ? nil : changed
    }
}
