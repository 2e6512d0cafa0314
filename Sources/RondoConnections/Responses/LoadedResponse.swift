internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// An `HTTPURLResponse` that corrects what Foundation gets wrong on Linux: lengths, media types and file
/// names.
///
/// Its fields and its status are stored in the superclass, whose members for them cannot be overridden.
final class LoadedResponse: HTTPURLResponse, @unchecked Sendable {
    // `@unchecked` as the superclass is: nothing in it changes after initialisation.
    private let announcedLength: Int64
    private var address: URL?

    /// Foundation's initialiser derives a file name from the URL's path; this class does so only on request.
    /// So the superclass gets a URL without a path.
    private static let pathless = URL(string: "#")

    override var url: URL? { address }

    init?(url: URL, head: ResponseHead, bodyLength: Int64?) {
        announcedLength = Self.announcedLength(head, bodyLength: bodyLength)
        address = url
        super.init(
            url: Self.pathless ?? url, statusCode: head.status, httpVersion: head.version.description,
            headerFields: ResponseFields.dictionary(head))
    }

    /// A stored response, with the seconds since it was made (RFC 9111 §5.1); nil for one that is not HTTP.
    convenience init?(_ response: URLResponse, age: Double) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var fields = Self.fields(of: response)
        fields.set(name: "Age", value: Self.age(age))
        self.init(response, fields)
    }

    /// Seconds in the form of the Age field.
    static func age(_ seconds: Double) -> String { String(Int64(min(seconds, Double(Int32.max)))) }

    /// The response in the form in which it is stored, without the fields that belong to one connection (RFC
    /// 9111 §3.1); nil if it has no such fields.
    convenience init?(toStore response: URLResponse) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var fields = Self.fields(of: response)
        let gone = CacheEntry.hopByHop(fields)
        if gone.isEmpty { return nil }
        for name in gone { fields.remove(name) }
        self.init(response, fields)
    }

    /// A stored response, which the delegate may have changed (rule UC-54), with the fields of a 304; nil if
    /// it is not HTTP.
    convenience init?(
        _ response: URLResponse, confirmedBy head: ResponseHead, receivedAt: Date, length: Int
    ) {
        guard let response = response as? HTTPURLResponse else { return nil }
        let fields = CacheEntry.freshened(
            Self.fields(of: response), by: head.fields, receivedAt: receivedAt)
        self.init(response, fields, length: Int64(length))
    }

    private convenience init?(_ response: HTTPURLResponse, _ fields: HeaderFields, length: Int64? = nil) {
        guard let url = response.url else { return nil }
        self.init(
            url: url, head: ResponseHead(status: response.statusCode, fields: fields),
            bodyLength: length ?? response.expectedContentLength)
    }

    private static func fields(of response: HTTPURLResponse) -> HeaderFields {
        HeaderFields(
            response.allHeaderFields.compactMap { name, value in
                (name as? String).flatMap { name in (value as? String).map { (name, $0) } }
            })
    }

    required init?(coder: NSCoder) {
        announcedLength = coder.decodeInt64(forKey: Self.lengthKey)
        super.init(coder: coder)
        address = super.url
    }

    override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(announcedLength, forKey: Self.lengthKey)
    }

    private static let lengthKey = "RondoAnnouncedLength"

    /// The announced length, or -1 if it is unknown (rule UC-25). For HEAD it is the length that GET would
    /// announce.
    private static func announcedLength(_ head: ResponseHead, bodyLength: Int64?) -> Int64 {
        if let length = bodyLength, length > 0 { return length }
        guard let field = head.fields.values(for: "Content-Length").first else { return bodyLength ?? -1 }
        // Without a body the field has not been checked. Equal values in one field are one (RFC 9110 §8.6).
        guard let length = Int64(field.prefix { $0 != "," }), length >= 0 else { return -1 }
        return length
    }

    override var expectedContentLength: Int64 { announcedLength }

    private var mediaType: MediaTypeField? {
        value(forHTTPHeaderField: "Content-Type").flatMap { MediaTypeField($0) }
    }

    /// The media type in Content-Type, in lower case and without parameters; if there are several, the last
    /// one. Nil if there is none.
    override var mimeType: String? { mediaType?.essence }

    /// The charset in Content-Type (rule UC-26); Foundation finds the parameter only in lower case.
    override var textEncodingName: String? { mediaType?.parameters["charset"] }

    /// A name under which the body can be saved (rule UC-26). It never contains a path separator.
    override var suggestedFilename: String? {
        SuggestedFilename.from(
            contentDisposition: value(forHTTPHeaderField: "Content-Disposition"), url: url, mimeType: mimeType
        )
    }
}
