import Rondo
import RondoHTTP

/// An answer: a head and a body.
struct ServedResponse {
    var status: Int
    var fields: [(name: String, value: String)]
    var body: ServedBody
    /// The value of Content-Length. The answer to a HEAD has the length of the answer to a GET. Nil if the
    /// status has no body.
    var length: Int?
    var keepsConnection: Bool

    /// The bytes before the body.
    func head(now: Date) -> [UInt8] {
        var lines = [
            "HTTP/1.1 \(status) \(Self.reason(status))", "Date: \(HTTPDate.format(now))",
            "Server: rondo/\(rondoVersion)",
        ]
        lines += fields.map { "\($0.name): \($0.value)" }
        if let length { lines.append("Content-Length: \(length)") }
        lines.append("Connection: \(keepsConnection ? "keep-alive" : "close")")
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// An answer with a sentence about an error, for programs and people.
    static func message(
        _ status: Int, _ sentence: String, fields: [(name: String, value: String)] = [], keepsConnection: Bool
    ) -> ServedResponse {
        let body = ServedBody("\(status) \(reason(status)): \(sentence)\n")
        return ServedResponse(
            status: status, fields: [("Content-Type", "text/plain; charset=utf-8")] + fields, body: body,
            length: body.count, keepsConnection: keepsConnection)
    }

    /// The answer to bytes that are not a valid request for this server. It ends the connection.
    init(_ refusal: ServedRequest.Refusal) {
        let sentence =
            switch refusal {
            case .badRequest: "this is no request of HTTP/1.1"
            case .methodNotAllowed: "this server answers GET and HEAD"
            case .requestTimeout: "the request took too long to come"
            case .contentTooLarge: "this server takes no request with a body"
            case .headTooLarge: "the head of the request is too large"
            case .serviceUnavailable: "all connections of this server are in use"
            case .versionNotSupported: "this server speaks HTTP/1.1"
            }
        self = Self.message(
            refusal.rawValue, sentence,
            fields: refusal == .methodNotAllowed ? [("Allow", "GET, HEAD")] : [], keepsConnection: false)
    }

    init(
        status: Int, fields: [(name: String, value: String)], body: ServedBody, length: Int?,
        keepsConnection: Bool
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.length = length
        self.keepsConnection = keepsConnection
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 416: "Range Not Satisfiable"
        case 431: "Request Header Fields Too Large"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}
