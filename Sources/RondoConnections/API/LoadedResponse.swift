internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// Foundation's response, mended where Foundation on Linux answers wrongly.
final class LoadedResponse: HTTPURLResponse, @unchecked Sendable {
    // `@unchecked` as its superclass is: nothing in it changes after it was made.
    private let announcedLength: Int64
    private var address: URL?

    /// Foundation's initialiser makes a file name of the URL's path, which takes a third of its time; ours is made
    /// when somebody asks for it. This is the URL that takes it the least time.
    private static let pathless = URL(string: "#")

    override var url: URL? { address }

    /// The response that was made last.
    private struct Last {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        var response: LoadedResponse
    }

    private static let last = Mutex<Last?>(nil)

    /// The response to a request for `url`. Where it would be the very one that was made last, which nobody has any more, it
    /// is that: to make one, by Foundation's initialiser, is the dearest single step of a small request.
    ///
    /// A response never changes, so that only a weak reference can tell: it is not nil as long as the response is the last.
    static func of(_ url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        let (known, old) = last.withLock { last -> (LoadedResponse?, Last?) in
            guard var taken = last.take() else { return (nil, nil) }
            guard taken.head === head, taken.bodyLength == bodyLength, taken.url == url,
                isKnownUniquelyReferenced(&taken.response)
            else { return (nil, taken) }
            last = taken
            return (taken.response, nil)
        }
        withExtendedLifetime(old) {}
        if let known { return known }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        if head.fields.size <= ResponseHead.maximumRemembered {
            last.withLock { $0 = Last(url: url, head: head, bodyLength: bodyLength, response: made) }
        }
        return made
    }

    init?(url: URL, head: ResponseHead, bodyLength: Int64?) {
        announcedLength = Self.announcedLength(head, bodyLength: bodyLength)
        let fields = ResponseFields.dictionary(head)
        let isPut = ResponseFieldsPlace.isKnown
        address = url
        super.init(
            url: Self.pathless ?? url, statusCode: head.status, httpVersion: head.version.description,
            headerFields: isPut ? nil : fields)
        if isPut { ResponseFieldsPlace.put(fields, into: self) }
    }

    /// A response that is kept, with the seconds since it was made (RFC 9111 §5.1); nil for what is no HTTP.
    convenience init?(_ response: URLResponse, age: Double) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var fields = Self.fields(of: response)
        fields.set(name: "Age", value: Self.age(age))
        self.init(response, fields)
    }

    /// Seconds as the field Age has them.
    static func age(_ seconds: Double) -> String { String(Int64(min(seconds, Double(Int32.max)))) }

    /// The response as it is kept, without what speaks of one connection (RFC 9111 §3.1); nil where nothing
    /// does.
    convenience init?(kept response: URLResponse) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var fields = Self.fields(of: response)
        let gone = CacheEntry.hopByHop(fields)
        if gone.isEmpty { return nil }
        for name in gone { fields.remove(name) }
        self.init(response, fields)
    }

    /// A response that is kept, whatever the delegate has made of it (rule UC-54), with what a 304 says; nil for
    /// what is no HTTP.
    convenience init?(_ response: URLResponse, confirmedBy head: ResponseHead, length: Int) {
        guard let response = response as? HTTPURLResponse else { return nil }
        self.init(
            response, CacheEntry.freshened(Self.fields(of: response), by: head.fields), length: Int64(length))
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

    /// The announced length, or -1 where it is unknown (rule UC-25). To HEAD it is the one that GET would
    /// have.
    private static func announcedLength(_ head: ResponseHead, bodyLength: Int64?) -> Int64 {
        if let length = bodyLength, length > 0 { return length }
        if let field = head.fields.values(for: "Content-Length").first, let length = Int64(field) {
            return length
        }
        return bodyLength ?? -1
    }

    override var expectedContentLength: Int64 { announcedLength }

    private var mediaType: MediaTypeField? {
        value(forHTTPHeaderField: "Content-Type").flatMap { MediaTypeField($0) }
    }

    /// The media type that Content-Type names, in lower case and without parameters; of several the last one. Nil where
    /// it names none.
    override var mimeType: String? { mediaType?.essence }

    /// The charset that Content-Type names (rule UC-26); Foundation knows the parameter in lower case only.
    override var textEncodingName: String? { mediaType?.parameters["charset"] }

    /// A name under which the body can be saved (rule UC-26). It never holds a path separator.
    override var suggestedFilename: String? {
        SuggestedFilename.from(
            contentDisposition: value(forHTTPHeaderField: "Content-Disposition"), url: url, mimeType: mimeType
        )
    }
}
