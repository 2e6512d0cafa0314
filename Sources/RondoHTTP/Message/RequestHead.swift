/// What a request begins with: its first line and its header section.
///
/// It may hold anything; `HTTP1Connection.send(head:body:into:)` refuses what must not be sent.
package struct RequestHead: Sendable, Equatable {
    /// A token, case-sensitive: `GET` is not `get` (RFC 9110 §9.1).
    package var method: String
    /// What the first line names: `/path?query` (origin-form), a whole URL to a proxy (absolute-form),
    /// `host:port` for CONNECT (authority-form) or `*` (RFC 9112 §3.2). Percent-encoded, without fragment.
    package var target: String
    package var fields: HeaderFields

    package init(method: String, target: String, fields: HeaderFields = HeaderFields()) {
        self.method = method
        self.target = target
        self.fields = fields
    }
}

/// How the end of a request's body can be told (RFC 9112 §6).
package enum RequestBodyFraming: Sendable, Equatable {
    /// No body, and no field that speaks of one. A POST or PUT without content is `.length(0)`, so that it
    /// says `Content-Length: 0` (RFC 9110 §8.6).
    case none
    /// Exactly this many bytes follow.
    case length(Int64)
    /// A length that is not known yet; each piece says its own.
    case chunked
}
