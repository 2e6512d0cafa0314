internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The request that a redirect proposes (rule UC-33).
enum RedirectedRequest {
    /// Fields that describe a body, besides all that begin with `Content-`, and are dropped with it: the
    /// metadata of RFC 9110 §8, the digests of RFC 3230 and RFC 9530 (§15.4, step 5, names some "but not
    /// limited to"), and the framing.
    private static let bodyFields: Set<String> = [
        "digest", "repr-digest", "last-modified", "etag", "transfer-encoding", "trailer", "expect",
    ]

    private static func speaksOfBody(_ field: String) -> Bool {
        let field = field.lowercased()
        return field.hasPrefix("content-") || bodyFields.contains(field)
    }

    /// Fields that are meant for one origin only.
    private static let originFields = ["Authorization", "Cookie", "Proxy-Authorization"]

    static func isForOneOrigin(_ field: String) -> Bool {
        originFields.contains { $0.caseInsensitiveCompare(field) == .orderedSame }
    }

    static func from(
        _ request: URLRequest, to url: URL, method: String, keepsBody: Bool, sameOrigin: Bool
    ) -> URLRequest {
        var next = request
        next.url = url
        next.httpMethod = method
        if !keepsBody {
            next.httpBody = nil
            next.httpBodyStream = nil
            for field in (next.allHTTPHeaderFields ?? [:]).keys where speaksOfBody(field) {
                next.setValue(nil, forHTTPHeaderField: field)
            }
        }
        // If the program has set a Host field, it names the old server.
        next.setValue(nil, forHTTPHeaderField: "Host")
        if !sameOrigin {
            for field in originFields { next.setValue(nil, forHTTPHeaderField: field) }
        }
        return next
    }
}
