import Rondo
import RondoHTTP

/// One request of a transfer, in the form in which it is sent.
struct FetchRequest: Sendable {
    enum Body: Sendable {
        case none
        case data(Data)
        /// Pieces that are read while they are sent.
        case segments([MultipartForm.Segment])
        case input(StreamedInput)

        /// The length in bytes; nil if not known.
        var length: Int64? {
            switch self {
            case .none: 0
            case .data(let data): Int64(data.count)
            case .segments(let segments): segments.reduce(0) { $0 + $1.length }
            case .input: nil
            }
        }
    }

    struct Field: Equatable, Sendable {
        var name: String
        var value: String
    }

    /// The body size above which a request waits for the server's go-ahead, as in curl.
    static let expectThreshold: Int64 = 1 << 20

    var url: FetchURL
    var method: String
    var body: Body
    /// True if the command line names the method, so that redirects keep it.
    var hasOwnMethod: Bool
    var isUpload = false
    /// Fields that the options add, whatever redirects follow.
    var own: [Field] = []
    /// Fields of the command line, which replace fields of the same names.
    var given: GivenFields
    var referer: String?
    /// Name and password that may be sent to the URL's host.
    var credential: (user: String, password: String)?
    var netrc: Netrc?
    /// The most bytes of the body that are sent in a second.
    var maximumRate: Int?
    /// True if the request goes to the origin that the command line names.
    var isAtOrigin = true

    /// The value of the Authorization field, if it is sent without a challenge.
    func authorization(_ operation: FetchOperation) -> String? {
        if let bearer = operation.bearer {
            return isAtOrigin || operation.trustsRedirects ? "Bearer " + bearer : nil
        }
        guard let credential, operation.authentication == .basic else { return nil }
        return "Basic " + Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
    }

    /// All fields except Host, for which `host` may have another value.
    func fields(_ operation: FetchOperation, cookies: String?) -> [Field] {
        var fields: [Field] = []
        let add = { (name: String, value: String?, fields: inout [Field]) in
            if let value, !given.names.contains(name.lowercased()) {
                fields.append(Field(name: name, value: value))
            }
        }
        add("Authorization", authorization(operation), &fields)
        add("User-Agent", operation.userAgent, &fields)
        add(
            "Accept", operation.data.isJSON && operation.kind == .data ? "application/json" : "*/*",
            &fields)
        if operation.decodes { add("Accept-Encoding", ContentCoding.acceptEncoding, &fields) }
        add("Referer", referer, &fields)
        add("Cookie", cookies, &fields)
        for field in own { add(field.name, field.value, &fields) }
        // The JSON media type is sent after a redirect too, as in curl.
        if sendsBody
            || (operation.kind == .data && operation.data.isJSON && !operation.movesDataToQuery)
        {
            add("Content-Type", contentType(operation), &fields)
        }
        if sendsBody {
            let isLarge = body.length.map { isUpload ? $0 > 0 : $0 > Self.expectThreshold } ?? true
            if isLarge { add("Expect", "100-continue", &fields) }
        }
        let isTrusted = isAtOrigin || operation.trustsRedirects
        return fields.filter { !$0.value.isEmpty || $0.name != "User-Agent" }
            + given.fields.filter { isTrusted || !Self.isSecret($0.name) }
    }

    private static func isSecret(_ name: String) -> Bool {
        ["authorization", "cookie"].contains(name.lowercased())
    }

    private var sendsBody: Bool {
        if case .none = body { false } else { true }
    }

    private func contentType(_ operation: FetchOperation) -> String? {
        if isUpload { return nil }
        switch operation.kind {
        case .data:
            return operation.data.isJSON ? "application/json" : "application/x-www-form-urlencoded"
        // The media type of a form contains its boundary.
        case .form, nil: return formType
        }
    }

    /// The Content-Type of a form.
    var formType: String?

    /// True if the body is sent in chunks, even if its length is known.
    var isChunked: Bool {
        guard sendsBody else { return false }
        return body.length == nil || given.wantsChunks
    }
}

extension FetchRequest.Field {
    /// The field of a line; nil if it has no colon. Spaces and tabs at the ends of the value are not part of
    /// it; other white space is (RFC 9110, section 5.5).
    init?(line: Substring.UTF8View) {
        // By bytes: what follows the colon could be one character with it.
        guard let colon = line.firstIndex(of: Grammar.colon) else { return nil }
        let value = Self.trimmed(line[line.index(after: colon)...])
        self.init(name: String(Substring(line[..<colon])), value: value)
    }

    /// The text without spaces and tabs at its ends.
    static func trimmed(_ text: Substring.UTF8View) -> String {
        let start = text.drop(while: Grammar.isWhitespace)
        let end = start.lastIndex { !Grammar.isWhitespace($0) }
        return end.map { String(Substring(start[...$0])) } ?? ""
    }
}

/// The fields of `-H`: fields to send, and names of fields to leave out.
struct GivenFields: Equatable, Sendable {
    private(set) var fields: [FetchRequest.Field] = []
    /// In lower case, including names of fields to leave out.
    private(set) var names: Set<String> = []
    private(set) var omitted: [String] = []
    private(set) var host: String?
    private(set) var wantsChunks = false
    /// True if Content-Length was given: it is sent with the actual length of the body.
    private(set) var saysLength = false

    init(_ texts: [String]) {
        for text in texts { add(text) }
    }

    /// Text that is no field is skipped, as in curl.
    private mutating func add(_ text: String) {
        // A line end would begin another field.
        let text = text.withoutLineEnds
        var field = FetchRequest.Field(name: String(text.dropLast()), value: "")
        if let given = FetchRequest.Field(line: text.utf8[...]) {
            field = given
            if field.value.isEmpty {
                omitted.append(field.name)
                names.insert(field.name.lowercased())
                return
            }
        } else if text.utf8.last != UInt8(ascii: ";") {
            return
        }
        guard Self.isToken(field.name) else { return }
        let name = field.name.lowercased()
        names.insert(name)
        switch name {
        case "host": host = field.value
        case "transfer-encoding" where field.value.lowercased() == "chunked": wantsChunks = true
        case "content-length": saysLength = true
        case "transfer-encoding": break
        default: fields.append(field)
        }
    }

    /// A token (RFC 9110, section 5.6.2).
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}

// MARK: - Requests for the command line and for redirects

extension FetchRequest {
    /// Makes the first request to `given`.
    ///
    /// - Parameters:
    ///   - upload: The file that is sent.
    ///   - offset: The position at which the response is to begin.
    init(_ given: FetchURL, _ operation: FetchOperation, upload: String?, offset: Int64) throws {
        var query = operation.queryParts
        let fieldList = GivenFields(operation.fields)
        let movesData = operation.movesDataToQuery && !operation.data.isEmpty
        if movesData { query.append(FetchURL.encodingForeign(operation.data.bytes)) }
        var url = given.adding(query: query)
        var body = Body.none
        var method = operation.asksForHead ? "HEAD" : "GET"
        var formType: String?
        if let upload {
            method = "PUT"
            body = try Self.body(ofFile: upload, from: offset)
            if let name = (upload as NSString).pathComponents.last, url.path.hasSuffix("/"),
                upload != "-",
                upload != "."
            {
                url.path += QueryPart.encoded(Data(name.utf8)).replacingOccurrences(of: "+", with: "%20")
            }
        } else if operation.kind == .form {
            let form = try FormBody(operation.form)
            (method, body, formType) = ("POST", .segments(form.segments), form.contentType)
        } else if operation.kind == .data, !movesData {
            (method, body) = ("POST", .data(operation.data.bytes))
        }

        var own = try Self.conditions(operation, offset: upload == nil ? offset : 0)
        if upload != nil, offset > 0, let length = body.length, length > 0 {
            let (last, size) = (offset + length - 1, offset + length)
            own.append(Field(name: "Content-Range", value: "bytes \(offset)-\(last)/\(size)"))
        }
        self.init(
            url: url, method: operation.method ?? method, body: body,
            hasOwnMethod: operation.method != nil,
            isUpload: upload != nil, own: own, given: fieldList, referer: operation.referer)
        self.formType = formType
        maximumRate = operation.maximumRate
        netrc = try Self.netrc(operation)
        credential =
            try operation.credential ?? netrcCredential(for: url, operation)
            ?? url.user.map { (user: $0, password: url.password ?? "") }
    }

    /// - Parameter offset: The first byte that is sent.
    private static func body(ofFile path: String, from offset: Int64) throws -> Body {
        var status = stat()
        let isStandardInput = path == "-" || path == "."
        guard isStandardInput || stat(path, &status) == 0 && access(path, R_OK) == 0 else {
            throw unreadable(path, errno)
        }
        if status.st_mode & S_IFMT == S_IFDIR { throw unreadable(path, EISDIR) }
        if status.st_mode & S_IFMT == S_IFREG {
            let (start, size) = (min(offset, Int64(status.st_size)), Int64(status.st_size))
            return .segments([.file(path: path, offset: start, length: size - start)])
        }
        guard offset == 0 else {
            throw CommandFailure.usage("-C: an upload of \(path) cannot be continued: it has no length")
        }
        return try .input(isStandardInput ? .standard : StreamedInput(path))
    }

    private static func unreadable(_ path: String, _ code: Int32) -> FetchFailure {
        FetchFailure(
            .cannotOpenFile, "-T: cannot read \(path): \(String(cString: strerror(code)))",
            status: .cannotRead)
    }

    private static func conditions(_ operation: FetchOperation, offset: Int64) throws -> [Field] {
        var fields: [Field] = []
        if offset > 0 {
            fields.append(Field(name: "Range", value: "bytes=\(offset)-"))
        } else if let range = operation.range {
            fields.append(Field(name: "Range", value: "bytes=" + range))
        }
        switch operation.timeCondition {
        case .modifiedSince(let date):
            fields.append(Field(name: "If-Modified-Since", value: HTTPDate.format(date)))
        case .unmodifiedSince(let date):
            fields.append(Field(name: "If-Unmodified-Since", value: HTTPDate.format(date)))
        case nil: break
        }
        if let path = operation.etagToCompare {
            let data = access(path, F_OK) == 0 ? try InputFile.data(path, for: "--etag-compare") : Data()
            // A tag that is not UTF-8 could not be sent as it is.
            let text = String(validating: data, as: UTF8.self) ?? ""
            let etag = InputFile.lines(of: text).first { !$0.isEmpty }.map { String($0) } ?? ""
            fields.append(Field(name: "If-None-Match", value: etag.isEmpty ? "\"\"" : etag))
        }
        return fields
    }

    /// The netrc file; nil if it is not read, as with -u.
    private static func netrc(_ operation: FetchOperation) throws -> Netrc? {
        guard operation.netrc != .unused, operation.user == nil else { return nil }
        let path = operation.netrcPath ?? Netrc.standardPath
        if access(path, R_OK) == 0 { return try Netrc(InputFile.data(path, for: "-n")) }
        if operation.netrc == .required, operation.netrcPath != nil {
            throw FetchFailure(.cannotOpenFile, "--netrc-file: cannot read \(path)", status: .cannotRead)
        }
        return nil
    }

    /// The credential of the netrc file for the host of `url`, of the URL's user if it names one. A password
    /// in the URL has precedence if the file is optional.
    private func netrcCredential(
        for url: FetchURL, _ operation: FetchOperation
    ) throws(CommandFailure) -> (user: String, password: String)? {
        if operation.netrc == .optional, url.password != nil { return nil }
        return try netrc?.credential(for: url.host, user: url.user)
    }

    /// Makes the request that follows a redirect.
    ///
    /// - Parameter first: The request of the command line.
    /// - Throws: `CommandFailure` if the netrc file's credential for its host is not UTF-8.
    func redirected(
        to target: FetchURL, status: Int, first: FetchRequest, _ operation: FetchOperation
    ) throws(CommandFailure) -> FetchRequest {
        var next = self
        next.url = target
        next.isAtOrigin = target.isSameHost(as: first.url)
        if target.user != nil || !target.isSameHost(as: url) {
            // The user of a redirect's URL is sent to that URL's host alone.
            let own = target.user.map { (user: $0, password: target.password ?? "") }
            let isTrusted = next.isAtOrigin || operation.trustsRedirects
            // Unlike curl, which sends a password of the file in plain text where a redirect leads from https
            // to http. (A file is read only if the command line has no password.)
            let losesTLS = first.url.isSecure && !target.isSecure
            let given = own ?? (losesTLS && netrc != nil ? nil : first.credential)
            let found = try losesTLS ? nil : netrcCredential(for: target, operation)
            next.credential = found ?? (isTrusted ? given : nil)
        }
        if operation.sendsReferers {
            var page = url
            page.fragment = nil
            next.referer = page.text
        }
        let isPost = if case .none = body { false } else { !isUpload }
        let keepsPost = operation.keepsPostAfter.contains(status)
        let loses =
            status == 303 ? !(isPost && keepsPost) : [301, 302].contains(status) && isPost && !keepsPost
        if loses {
            next.body = .none
            next.isUpload = false
            if !hasOwnMethod, next.method != "HEAD" { next.method = "GET" }
        }
        return next
    }
}
