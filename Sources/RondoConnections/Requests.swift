internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The form of a request in which it is sent (rule UC-29): scheme and host in lower case, and a path.
enum CanonicalRequest {
    /// - Returns: Nil for what is not an http or https URL with a host.
    static func of(_ request: URLRequest) -> URLRequest? {
        guard let url = request.url, let scheme = url.scheme, let host = url.host, !host.isEmpty else {
            return nil
        }
        let lowerScheme = scheme.lowercased()
        guard lowerScheme == "http" || lowerScheme == "https" else { return nil }
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
}

/// The request that a redirect proposes (rule UC-33).
enum RedirectedRequest {
    /// What described a body that is not sent again.
    private static let bodyFields = [
        "Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Transfer-Encoding",
        "Expect",
    ]
    /// What is meant for one origin only.
    private static let originFields = ["Authorization", "Cookie", "Proxy-Authorization"]

    static func from(
        _ request: URLRequest, to url: URL, method: String, keepsBody: Bool, sameOrigin: Bool
    ) -> URLRequest {
        var next = request
        next.url = url
        next.httpMethod = method
        if !keepsBody {
            next.httpBody = nil
            for field in bodyFields { next.setValue(nil, forHTTPHeaderField: field) }
        }
        // The Host of the old request names the old server, should the program have set one.
        next.setValue(nil, forHTTPHeaderField: "Host")
        if !sameOrigin {
            for field in originFields { next.setValue(nil, forHTTPHeaderField: field) }
        }
        return next
    }
}

/// A request as HTTP/1.1 sends it, and where it goes.
struct OutgoingRequest {
    let head: RequestHead
    let framing: RequestBodyFraming
    let body: Data
    /// The request may be sent a second time without doing twice what it does (RFC 9110 §9.2.2).
    let isIdempotent: Bool

    /// - Parameter omittedFields: Names of fields that are not added where the request lacks them.
    init(_ request: URLRequest, omittedFields: [String] = []) throws(LoadFailure) {
        let omitted = Set(omittedFields.map { $0.lowercased() })
        guard let url = request.url, let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let host = parts.percentEncodedHost, !host.isEmpty
        else { throw .unsupportedURL }
        guard request.httpBodyStream == nil else { throw .bodyStreamUnsupported }
        let method = request.httpMethod ?? "GET"
        var target = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        if let query = parts.percentEncodedQuery { target += "?" + query }
        var fields = HeaderFields()
        fields.append(name: "Host", value: parts.port.map { "\(host):\($0)" } ?? host)
        // In one order, whatever that of the dictionary is.
        let given = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key.lowercased() < $1.key.lowercased() }
        for (name, value) in given where !Self.isFraming(name) {
            if name.lowercased() == "host" {
                fields.set(name: "Host", value: value)
            } else {
                fields.append(name: name, value: value)
            }
        }
        for (name, value) in Self.defaults
        where !fields.contains(name) && !omitted.contains(name.lowercased()) {
            fields.append(name: name, value: value)
        }
        head = RequestHead(method: method, target: target, fields: fields)
        body = request.httpBody ?? Data()
        // A method that carries a body says how long it is, also when it is empty (RFC 9110 §8.6).
        let expectsBody = ["POST", "PUT", "PATCH"].contains(method)
        framing = body.isEmpty && !expectsBody ? .none : .length(Int64(body.count))
        isIdempotent = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(method)
    }

    /// What a request says that does not say it itself.
    private static let defaults = [("Accept", "*/*"), ("User-Agent", "Rondo")]

    /// Written by the codec, from the body that is there.
    private static func isFraming(_ name: String) -> Bool {
        let name = name.lowercased()
        return name == "content-length" || name == "transfer-encoding"
    }
}
