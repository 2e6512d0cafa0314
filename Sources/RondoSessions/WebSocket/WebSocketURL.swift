internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Translates ws and wss URLs to http and https, the schemes that the engine loads (RFC 6455 §3), and back.
enum WebSocketURL {
    /// The request as it is sent; nil if it cannot open a WebSocket (rule WS-1).
    static func sent(_ request: URLRequest) -> URLRequest? {
        guard (request.httpMethod ?? "GET") == "GET", let url = request.url else { return nil }
        switch url.scheme?.lowercased() {
        case "ws": return with(request, url, scheme: "http")
        case "wss": return with(request, url, scheme: "https")
        // The target of a redirect, or the request that a delegate made of it (rule WS-3).
        case "http", "https": return request
        default: return nil
        }
    }

    /// True if a task may begin with this URL.
    static func isWebSocket(_ url: URL?) -> Bool {
        let scheme = url?.scheme?.lowercased()
        return scheme == "ws" || scheme == "wss"
    }

    /// The request with the URL as the program sees it.
    static func shown(_ request: URLRequest) -> URLRequest {
        guard let url = request.url else { return request }
        var changed = request
        changed.url = shown(url)
        return changed
    }

    /// The error with the URL as the program sees it (rule US-86).
    static func shown(_ error: (any Error)?) -> (any Error)? {
        guard let error = error as? URLError, let url = error.failingURL else { return error }
        return URLErrors.error(error, at: shown(url))
    }

    private static func shown(_ url: URL) -> URL {
        switch url.scheme?.lowercased() {
        case "http": with(url, scheme: "ws") ?? url
        case "https": with(url, scheme: "wss") ?? url
        default: url
        }
    }

    private static func with(_ request: URLRequest, _ url: URL, scheme: String) -> URLRequest? {
        guard let url = with(url, scheme: scheme) else { return nil }
        var changed = request
        changed.url = url
        return changed
    }

    private static func with(_ url: URL, scheme: String) -> URL? {
        let text = url.absoluteString
        return text.firstIndex(of: ":").flatMap { URL(string: scheme + text[$0...]) }
    }
}
