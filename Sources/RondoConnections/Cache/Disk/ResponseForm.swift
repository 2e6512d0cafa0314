internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The form in which the database holds a response that a delegate, a program or a protocol of the program
/// has made: a property list.
///
/// Not a keyed archive: Foundation's unarchiver traps on bytes that are no archive, while the XML reader
/// reports an error. A value is taken only if it has the type that it was written with.
enum ResponseForm {
    private enum Kind: String {
        case plain
        case http
        /// A `LoadedResponse`, whose length is the announced one.
        case loaded
    }

    /// The beginning of an XML list. Binary lists are refused: Foundation's reader of them follows circular
    /// references until its stack overflows.
    private static let beginning = Data("<?xml".utf8)

    private enum Key {
        static let kind = "kind"
        static let url = "url"
        static let mediaType = "type"
        static let length = "length"
        static let encoding = "encoding"
        static let status = "status"
        static let fields = "fields"
        static let userInfo = "userInfo"
    }

    /// Nil for a response of a class of the program's own, and for a user info that a property list cannot
    /// hold: such responses stay in memory.
    static func data(of cached: CachedURLResponse) -> Data? {
        let response = cached.response
        guard let url = response.url?.absoluteString else { return nil }
        var values: [String: Any] = [
            Key.url: url, Key.length: NSNumber(value: response.expectedContentLength),
        ]
        switch response {
        case let response as HTTPURLResponse:
            let isLoaded = response is LoadedResponse
            guard isLoaded || type(of: response) == HTTPURLResponse.self else { return nil }
            values[Key.kind] = (isLoaded ? Kind.loaded : .http).rawValue
            values[Key.status] = response.statusCode
            var fields: [String: String] = [:]
            for case let (name as String, value as String) in response.allHeaderFields {
                fields[name] = value
            }
            values[Key.fields] = fields
        default:
            guard type(of: response) == URLResponse.self else { return nil }
            values[Key.kind] = Kind.plain.rawValue
            if let type = response.mimeType { values[Key.mediaType] = type }
            if let encoding = response.textEncodingName { values[Key.encoding] = encoding }
        }
        if let userInfo = cached.userInfo, !userInfo.isEmpty { values[Key.userInfo] = userInfo }
        // An error means that the user info is no property list: the response stays in memory.
        return try? PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
    }

    /// Nil for bytes that `data(of:)` has not made.
    static func response(_ data: Data, _ content: Data) -> CachedURLResponse? {
        guard data.starts(with: beginning) else { return nil }
        // A broken row counts as a miss.
        let list = try? PropertyListSerialization.propertyList(from: data, format: nil)
        guard let values = list as? [String: Any], let response = response(values) else { return nil }
        return CachedURLResponse(
            response: response, data: content, userInfo: values[Key.userInfo] as? [AnyHashable: Any],
            storagePolicy: .allowed)
    }

    private static func response(_ values: [String: Any]) -> URLResponse? {
        guard let kind = (values[Key.kind] as? String).flatMap(Kind.init),
            let url = (values[Key.url] as? String).flatMap({ URL(string: $0) }),
            let length = (values[Key.length] as? NSNumber)?.int64Value
        else { return nil }
        if kind == .plain {
            return URLResponse(
                url: url, mimeType: values[Key.mediaType] as? String,
                expectedContentLength: Int(truncatingIfNeeded: length),
                textEncodingName: values[Key.encoding] as? String)
        }
        guard let status = (values[Key.status] as? NSNumber)?.intValue, 100...999 ~= status,
            let fields = values[Key.fields] as? [String: String]
        else { return nil }
        if kind == .http {
            return HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        }
        let head = ResponseHead(status: status, fields: HeaderFields(fields.map { ($0.key, $0.value) }))
        return LoadedResponse(url: url, head: head, bodyLength: length)
    }
}
