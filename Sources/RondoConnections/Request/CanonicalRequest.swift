internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The form in which a request is sent (rule UC-29): for http and https, with scheme and host in lower case,
/// and a path; for a protocol of the program, the form that the protocol returns.
enum CanonicalRequest {
    /// - Parameter hosts: Hosts that are known to be asked over TLS alone, besides those that all loads know.
    /// - Returns: Nil if the request cannot be loaded.
    static func of(
        _ request: URLRequest, by protocols: ProtocolClasses = .registered, _ hosts: OwnHSTSHosts? = nil
    ) -> URLRequest? {
        if let type = protocols.accepting(request) { return type.canonicalRequest(for: request) }
        guard let url = request.url else { return nil }
        if isCanonical(url, hosts) || LocalContent.canLoad(url) { return request }
        guard let scheme = url.scheme, let host = url.host, !host.isEmpty else {
            return nil
        }
        let lowerScheme = scheme.lowercased()
        guard lowerScheme == "http" || lowerScheme == "https" else { return nil }
        // The request stays as it is, and fails later because of its port: a rebuilt URL could lose the port.
        if URIPort(of: url) == .impossible { return request }
        if let secure = KnownHSTSHosts.upgraded(url, hosts) {
            var rewritten = request
            rewritten.url = secure
            return of(rewritten, by: protocols, hosts)
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

    /// Whether `of(_:)` would return the request unchanged, as far as a quick test can tell.
    static func isSent(
        asIs request: LoadRequest, by protocols: ProtocolClasses = .registered, _ hosts: OwnHSTSHosts? = nil
    ) -> Bool {
        guard request.address?.isPlain ?? false, protocols.accepting(request.value) == nil else {
            return false
        }
        if KnownHSTSHosts.isEmpty, hosts?.isEmpty ?? true { return true }
        return request.url.flatMap { KnownHSTSHosts.upgraded($0, hosts) } == nil
    }

    /// Whether `of(_:)` returns a request.
    static func exists(for request: LoadRequest) -> Bool { isSent(asIs: request) || of(request.value) != nil }

    private static func isCanonical(_ url: URL, _ hosts: OwnHSTSHosts?) -> Bool {
        WebAddress.isPlain(url) && KnownHSTSHosts.upgraded(url, hosts) == nil
    }
}
