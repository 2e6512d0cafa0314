import Rondo

/// Scheme, host and port: what a secret is meant for (RFC 6454).
struct Origin: Equatable, Sendable {
    private let scheme: String
    private let host: String
    private let port: Int

    init(_ url: URL?) {
        scheme = url?.scheme?.lowercased() ?? ""
        host = url?.host?.lowercased() ?? ""
        port = url?.port ?? (scheme == "https" ? 443 : 80)
    }

    /// `request`, going where a redirect leads, with the secrets of `first` if it stays at the same origin
    /// and without any if it does not.
    static func redirected(_ request: URLRequest, first: URLRequest) -> URLRequest {
        let isSame = Origin(request.url) == Origin(first.url)
        var request = request
        for field in ["Authorization", "Cookie"] {
            request.setValue(
                isSame ? first.value(forHTTPHeaderField: field) : nil, forHTTPHeaderField: field)
        }
        return request
    }
}
