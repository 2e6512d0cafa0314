/// How the end of a response's body is determined (RFC 9112 §6.3).
enum ResponseFraming: Sendable, Equatable {
    /// No body, whatever the fields say.
    case none
    case length(Int64)
    case chunked
    /// The body extends until the server closes the connection.
    case untilClose
    /// After this head the connection carries another protocol.
    case switched

    /// Follows the steps of RFC 9112 §6.3 in order, but rejects whatever they let a client repair or guess:
    /// response splitting relies on a response that can be read in two ways.
    init(of head: ResponseHead, answering request: RequestFacts) throws(HTTP1Error) {
        if head.status == 101 {
            guard request.offersUpgrade else { throw .peer(.unexpectedSwitchingProtocols) }
            self = .switched
        } else if request.isConnect, head.status / 100 == 2 {
            self = .switched
        } else if request.isHead || head.status / 100 == 1 || head.status == 204 || head.status == 304 {
            self = .none
        } else if head.fields.count(of: "Transfer-Encoding") > 0 {
            try Self.checkChunked(head)
            self = .chunked
        } else if let length = try Self.contentLength(head.fields) {
            self = .length(length)
        } else {
            self = .untilClose
        }
    }

    /// The length to report in advance; nil if it is not known.
    var bodyLength: Int64? {
        switch self {
        case .none, .switched: 0
        case .length(let length): length
        case .chunked, .untilClose: nil
        }
    }

    /// Accepts only `chunked`. Other codings need a `TE` in the request, which Rondo never sends. If the last
    /// coding is not `chunked`, §6.3 would read until the connection closes, and the body would be in a
    /// coding that Rondo cannot read.
    private static func checkChunked(_ head: ResponseHead) throws(HTTP1Error) {
        if head.version < .http11 { throw .peer(.transferEncodingInHTTP10) }
        if head.fields.count(of: "Content-Length") > 0 { throw .peer(.contentLengthWithTransferEncoding) }
        var codings = 0
        try head.fields.forEachElement(of: "Transfer-Encoding") { (coding) throws(HTTP1Error) in
            // Empty elements of a list do not count (RFC 9110 §5.6.1.2).
            if coding.isEmpty { return }
            codings += 1
            let isChunked = Grammar.equalIgnoringCase(coding, ("chunked" as StaticString).utf8Bytes)
            // Chunked twice is as unsupported as any other coding (RFC 9112 §6.1).
            if !isChunked || codings > 1 {
                throw .peer(.unsupportedTransferCoding(Grammar.excerpt(coding)))
            }
        }
        if codings == 0 { throw .peer(.unsupportedTransferCoding("")) }
    }

    /// Equal repetitions count as one length (`5, 5`, as RFC 9110 §8.6 permits); differing ones are an error.
    private static func contentLength(_ fields: HeaderFields) throws(HTTP1Error) -> Int64? {
        var length: Int64?
        try fields.forEachElement(of: "Content-Length") { (element) throws(HTTP1Error) in
            guard let value = Grammar.decimal(element) else {
                throw .peer(.invalidContentLength(Grammar.excerpt(element)))
            }
            if let known = length, known != value { throw .peer(.conflictingContentLengths(known, value)) }
            length = value
        }
        return length
    }
}

extension ResponseHead {
    /// Whether the server will keep the connection (RFC 9112 §9.3): unless it says close, and in HTTP/1.0
    /// only if it says keep-alive.
    var saysKeepAlive: Bool {
        if fields.contains("Connection", token: "close") { return false }
        return version >= .http11 || fields.contains("Connection", token: "keep-alive")
    }
}
