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
        guard request.address?.isPlain ?? false, protocols.accepting(request.value) == nil else {
            return false
        }
        return KnownHSTSHosts.isEmpty || request.url.flatMap { KnownHSTSHosts.upgraded($0) } == nil
    }

    /// Whether `of(_:)` gives a request.
    static func exists(for request: LoadRequest) -> Bool { isSent(asIs: request) || of(request.value) != nil }

    private static func isCanonical(_ url: URL) -> Bool {
        WebAddress.isPlain(url) && KnownHSTSHosts.upgraded(url) == nil
    }
}
