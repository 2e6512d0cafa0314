internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The source of the bytes of a request's body.
enum OutgoingBody {
    case data(Data)
    case stream(BodyStream)
}

/// A request in the form in which HTTP/1.1 sends it. It is sent once, and so is passed on without copies.
struct OutgoingRequest: ~Copyable {
    let head: RequestHead
    let framing: RequestBodyFraming
    let body: OutgoingBody
    /// Whether the request may be sent a second time without repeating its effect (RFC 9110 §9.2.2).
    let isIdempotent: Bool
    /// Whether the body waits for the server's go-ahead (RFC 9110 §10.1.1).
    let expectsContinue: Bool

    /// - Parameters:
    ///   - stream: The body, if it is a stream. Its length is the request's Content-Length; without one it is
    ///     sent in chunks (rule UC-35).
    ///   - omittedFields: Names of fields that are not added if the request lacks them.
    ///   - additionalFields: Fields that are sent after the request's own, each as often as it occurs here.
    ///   - named: A target that is sent in place of the URL's path and query.
    ///   - usualFields: The result of `usualFields(_:)` for the server, if it was made before: a head with
    ///     these very fields need not be encoded again.
    ///   - isForProxy: Whether the request line has the whole URL (RFC 9112 §3.2.2).
    ///   - add: Sets the fields that this exchange adds, given path and query, and the target as it is sent.
    init(
        _ given: LoadRequest, stream: BodyStream? = nil,
        omittedFields: [String] = [], additionalFields: [(name: String, value: String)] = [],
        target named: String? = nil, usualFields: HeaderFields? = nil, isForProxy: Bool = false,
        adding add: (_ target: String, _ sent: String, inout HeaderFields) -> Void = { _, _, _ in }
    ) throws(LoadFailure) {
        let omitted = omittedFields.isEmpty ? [] : omittedFields.map { $0.lowercased() }
        guard let address = given.address else { throw .unsupportedURL }
        let (request, method) = (given.value, given.method)
        // A proxy finds the server by the whole URL.
        let target = named ?? address.target
        let sent = isForProxy ? address.absoluteForm(target) : target
        var fields = HeaderFields()
        if given.fields.isEmpty, additionalFields.isEmpty {
            add(target, sent, &fields)
            if fields.isEmpty, omitted.isEmpty {
                fields = usualFields ?? Self.usualFields(address.authority)
            } else {
                let added = fields
                fields = HeaderFields(expecting: 8)
                fields.append(name: "Host", value: address.authority)
                fields.append(added)
                Self.addDefaults(to: &fields, omitting: omitted)
            }
        } else {
            fields = HeaderFields(expecting: 8)
            fields.append(name: "Host", value: address.authority)
            // In a fixed order, because a dictionary's order varies.
            let own = given.fields.sorted { $0.key.lowercased() < $1.key.lowercased() }
            for (name, value) in own where !Self.isFraming(name) {
                if name.lowercased() == "host" {
                    fields.set(name: "Host", value: value)
                } else {
                    fields.append(name: name, value: value)
                }
            }
            for (name, value) in additionalFields where !Self.isFraming(name) && name.lowercased() != "host" {
                fields.append(name: name, value: value)
            }
            add(target, sent, &fields)
            Self.addDefaults(to: &fields, omitting: omitted)
        }
        head = RequestHead(method: method, target: sent, fields: fields)
        if let stream {
            body = .stream(stream)
            framing = Self.announcedLength(of: request).map { .length($0) } ?? .chunked
        } else {
            let data = request.httpBody ?? Data()
            body = .data(data)
            // A method that usually has a body announces its length even if it is empty (RFC 9110 §8.6).
            let expectsBody = method != "GET" && ["POST", "PUT", "PATCH"].contains(method)
            let saysLength = expectsBody && !omitted.contains("content-length")
            framing = data.isEmpty && !saysLength ? .none : .length(Int64(data.count))
        }
        isIdempotent =
            switch method {
            case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
            default: false
            }
        let isEmpty = framing == .none || framing == .length(0)
        expectsContinue = !isEmpty && fields.contains("Expect", token: "100-continue")
    }

    /// Fields that are added to a request that lacks them.
    private static let defaults = [
        ("Accept", "*/*"), ("Accept-Encoding", ContentCoding.acceptEncoding), ("User-Agent", "Rondo"),
    ]

    /// The fields of a request that has none of its own.
    static func usualFields(_ authority: String) -> HeaderFields {
        var fields = HeaderFields([("Host", authority)] + defaults)
        fields.check()
        return fields
    }

    private static func addDefaults(to fields: inout HeaderFields, omitting omitted: [String]) {
        for (name, value) in defaults
        where !fields.contains(name) && (omitted.isEmpty || !omitted.contains(name.lowercased())) {
            // A part of an encoded whole cannot be decoded by itself.
            let wantsPart = name == "Accept-Encoding" && fields.contains("Range")
            fields.append(name: name, value: wantsPart ? "identity" : value)
        }
    }

    /// Whether the codec writes the field, from the body's framing.
    private static func isFraming(_ name: String) -> Bool {
        let name = name.lowercased()
        return name == "content-length" || name == "transfer-encoding"
    }

    /// The Content-Length of the request; nil if it has none, or an invalid one.
    private static func announcedLength(of request: URLRequest) -> Int64? {
        guard let text = request.value(forHTTPHeaderField: "Content-Length"),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int64(text)
    }
}
