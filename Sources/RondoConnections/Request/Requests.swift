internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The form of a request in which it is sent (rule UC-29): of http and https, scheme and host in lower case,
/// and a path; of a protocol of the program, what that makes of it.
enum CanonicalRequest {
    /// - Returns: Nil for what cannot be loaded.
    static func of(_ request: URLRequest, by protocols: ProtocolClasses = .registered) -> URLRequest? {
        if let type = protocols.accepting(request) { return type.canonicalRequest(for: request) }
        guard let url = request.url else { return nil }
        if isCanonical(url) || LocalContent.canLoad(url) { return request }
        guard let scheme = url.scheme, let host = url.host, !host.isEmpty else {
            return nil
        }
        let lowerScheme = scheme.lowercased()
        guard lowerScheme == "http" || lowerScheme == "https" else { return nil }
        // It stays as it is, and fails as such: put together anew it could lose its port.
        if URIPort(of: url) == .impossible { return request }
        if let secure = KnownHSTSHosts.upgraded(url) {
            var rewritten = request
            rewritten.url = secure
            return of(rewritten, by: protocols)
        }
        if scheme == lowerScheme && host == host.lowercased() && !url.path.isEmpty { return request }
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.scheme = lowerScheme
        parts.percentEncodedHost = parts.percentEncodedHost?.lowercased()
        if parts.percentEncodedPath.isEmpty { parts.percentEncodedPath = "/" }
        guard let canonical = parts.url else { return nil }
        var rewritten = request
        rewritten.url = canonical
        return rewritten
    }

    /// Whether `of(_:)` gives back what it gets, as far as that can be seen at a glance.
    static func isSent(asIs request: LoadRequest, by protocols: ProtocolClasses = .registered) -> Bool {
        guard let url = request.url, request.address?.isPlain ?? false else { return false }
        return protocols.accepting(request.value) == nil && KnownHSTSHosts.upgraded(url) == nil
    }

    /// Whether `of(_:)` has an answer.
    static func exists(for request: LoadRequest) -> Bool { isSent(asIs: request) || of(request.value) != nil }

    private static func isCanonical(_ url: URL) -> Bool {
        WebAddress.isPlain(url) && KnownHSTSHosts.upgraded(url) == nil
    }
}

/// The request that a redirect proposes (rule UC-33).
enum RedirectedRequest {
    /// What speaks of a body that is not sent again, besides all that begins with `Content-`: the metadata of RFC 9110
    /// §8 and the digests of RFC 3230 and RFC 9530 (§15.4, step 5, names some "but not limited to"), and what frames it.
    private static let bodyFields: Set<String> = [
        "digest", "repr-digest", "last-modified", "etag", "transfer-encoding", "trailer", "expect",
    ]

    private static func speaksOfBody(_ field: String) -> Bool {
        let field = field.lowercased()
        return field.hasPrefix("content-") || bodyFields.contains(field)
    }

    /// What is meant for one origin only.
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
        // The Host of the old request names the old server, should the program have set one.
        next.setValue(nil, forHTTPHeaderField: "Host")
        if !sameOrigin {
            for field in originFields { next.setValue(nil, forHTTPHeaderField: field) }
        }
        return next
    }
}
