/// The head of a request: its first line and its header section.
///
/// It may contain anything; `HTTP1Codec.send(head:body:into:)` rejects a head that must not be sent.
package struct RequestHead: Sendable, Equatable {
    /// A token, case-sensitive: `GET` is not `get` (RFC 9110 §9.1).
    package var method: String
    /// The target in the first line: `/path?query` (origin-form), a whole URL to a proxy (absolute-form),
    /// `host:port` for CONNECT (authority-form) or `*` (RFC 9112 §3.2). Percent-encoded, without fragment.
    package var target: String
    package var fields: HeaderFields

    package init(method: String, target: String, fields: HeaderFields = HeaderFields()) {
        self.method = method
        self.target = target
        self.fields = fields
    }
}

/// How the end of a request's body is determined (RFC 9112 §6).
package enum RequestBodyFraming: Sendable, Equatable {
    /// No body, and no field about one. A POST or PUT without content is `.length(0)`, which sends
    /// `Content-Length: 0` (RFC 9110 §8.6).
    case none
    /// Exactly this many bytes follow.
    case length(Int64)
    /// The length is not known yet; each piece is sent with its own.
    case chunked
}
