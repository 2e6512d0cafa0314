internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The source of the bytes of a request's body.
enum OutgoingBody {
    case data(Data)
    case stream(BodyStream)
}

/// A request in the form in which an exchange sends it. It is sent once, and so is passed on without copies.
struct OutgoingRequest: ~Copyable {
    let head: RequestHead
    let length: BodyLength
    let body: OutgoingBody
    /// The length of the body, as the head announces it.
    enum BodyLength: Equatable {
        case noBody
        case known(Int64)
        /// How the end of the body is told is the exchange's.
        case unknown
    }

    /// Whether the body waits for the server's go-ahead (RFC 9110 §10.1.1).
    let expectsContinue: Bool

    /// The head of a request before the fields are added that depend on the exchange: cookies, credentials,
    /// and the conditions of the cache.
    struct Draft {
        /// Path and query.
        let target: String
        /// The target as it is sent.
        let sentTarget: String
        /// The fields of the request and of the settings; the fields of the exchange are added to them.
        var fields: HeaderFields
        /// Whether the fields begin with Host; otherwise there were none.
        fileprivate let hasHost: Bool

        /// - Parameters:
        ///   - additionalFields: Fields that are sent behind the request's own, as often as they are here.
        ///   - named: The target that is sent in place of the URL's path and query.
        ///   - isForProxy: The request line names the whole URL (RFC 9112 §3.2.2).
        init(
            of request: LoadRequest, additionalFields: [(name: String, value: String)] = [],
            target named: String? = nil, isForProxy: Bool = false
        ) throws(LoadFailure) {
            guard let address = request.address else { throw .unsupportedURL }
            target = named ?? address.target
            // A proxy finds the server by the whole URL.
            sentTarget = isForProxy ? address.absoluteForm(target) : target
            hasHost = !request.fields.isEmpty || !additionalFields.isEmpty
            guard hasHost else {
                fields = HeaderFields()
                return
            }
            fields = HeaderFields(expecting: 8)
            fields.append(name: "Host", value: address.authority)
            // Sorted, so that the order does not depend on the dictionary.
            let own = request.fields.sorted { $0.key.lowercased() < $1.key.lowercased() }
            for (name, value) in own where !OutgoingRequest.isFraming(name) {
                if name.lowercased() == "host" {
                    fields.set(name: "Host", value: value)
                } else {
                    fields.append(name: name, value: value)
                }
            }
            for (name, value) in additionalFields
            where !OutgoingRequest.isFraming(name) && name.lowercased() != "host"
                && !(request.omitsExpect && name.lowercased() == "expect")
            {
                fields.append(name: name, value: value)
            }
        }
    }

    /// - Parameters:
    ///   - draft: Of the same request, with the fields of the exchange.
    ///   - stream: The body, if it is one of a stream. Its length is what the request's Content-Length says;
    ///     without one it is not known (rule UC-35).
    ///   - omittedFields: Names of fields that are not added where the request lacks them.
    ///   - usualFields: The result of an earlier call of `usualFields(_:)` for the server; nil for none. The
    ///     codec need not write a head again if its fields share the storage of these.
    static func request(
        of request: LoadRequest, from draft: Draft, stream: BodyStream? = nil,
        omittedFields: [String] = [], usualFields: HeaderFields? = nil
    ) throws(LoadFailure) -> OutgoingRequest {
        let omitted = omittedFields.isEmpty ? [] : omittedFields.map { $0.lowercased() }
        guard let address = request.address else { throw .unsupportedURL }
        var fields: HeaderFields
        if draft.hasHost {
            fields = draft.fields
            Self.addDefaults(to: &fields, omitting: omitted)
        } else if draft.fields.isEmpty, omitted.isEmpty {
            fields = usualFields ?? Self.usualFields(address.authority)
        } else {
            fields = HeaderFields(expecting: 8)
            fields.append(name: "Host", value: address.authority)
            fields.append(draft.fields)
            Self.addDefaults(to: &fields, omitting: omitted)
        }
        let body: OutgoingBody
        let length: BodyLength
        if let stream {
            body = .stream(stream)
            length = announcedLength(of: request.value).map { .known($0) } ?? .unknown
        } else {
            let data = request.value.httpBody ?? Data()
            body = .data(data)
            length =
                data.isEmpty && !saysLength(of: request.method, omitting: omitted)
                ? .noBody : .known(Int64(data.count))
        }
        let isEmpty = length == .noBody || length == .known(0)
        return OutgoingRequest(
            head: RequestHead(method: request.method, target: draft.sentTarget, fields: fields),
            length: length, body: body,
            expectsContinue: !isEmpty && fields.contains("Expect", token: "100-continue"))
    }

    /// Whether a request of this method without a body has a Content-Length of 0 (RFC 9110 §8.6).
    private static func saysLength(of method: String, omitting omitted: [String]) -> Bool {
        method != "GET" && ["POST", "PUT", "PATCH"].contains(method) && !omitted.contains("content-length")
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
            // A range of an encoded body cannot be decoded by itself.
            let wantsPart = name == "Accept-Encoding" && fields.contains("Range")
            fields.append(name: name, value: wantsPart ? "identity" : value)
        }
    }

    /// Whether the codec itself writes the field, according to the body.
    fileprivate static func isFraming(_ name: String) -> Bool {
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
