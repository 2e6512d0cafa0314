internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The data needed to continue an interrupted download (rule UC-71): where the rest begins, and how the
/// server can tell that the file has not changed (RFC 9110 §13.1.5 and §14).
struct DownloadResumption: Codable, Equatable {
    let url: URL
    /// The number of bytes that are in the file already.
    var bytes: Int64
    /// A strong ETag or a Last-Modified date, for If-Range.
    let validator: String
    /// The size of the whole file; nil if the server has not announced it.
    private(set) var total: Int64?
    /// Whether redirects have led to `url` from another origin: what the program meant for that one is not
    /// sent to this one (rule UC-33). Nil, in data of earlier versions: not known.
    var leftOrigin: Bool?
    /// The fields of the last request, except for those that ask for a part: the server may need them again.
    /// Nil in data of earlier versions.
    var fields: [String: String]?
    /// Whether cookies go with the request, and are kept (rule US-12). Nil, in data of earlier versions: not
    /// known.
    var handlesCookies: Bool?

    /// Nil if the server cannot continue, or could not tell that the file has not changed. A 206 answers a
    /// Range of the program's own: its body need not begin with the first byte of the file, nor reach to the
    /// last.
    ///
    /// - Parameter earlier: How the body continues that of an earlier download; nil if it does not.
    init?(
        _ response: HTTPURLResponse?, bytes: Int64, method: String,
        continuing earlier: DownloadResumption? = nil
    ) {
        if var earlier {
            // A 206 to If-Range need not repeat what the server has said of the file (RFC 9110 §15.3.7).
            earlier.bytes = bytes
            self = earlier
            return
        }
        guard method == "GET", let response, response.statusCode == 200, bytes > 0,
            let url = response.url,
            response.value(forHTTPHeaderField: "Accept-Ranges")?.lowercased() != "none",
            response.value(forHTTPHeaderField: "Content-Encoding") == nil,
            let validator = Self.validator(of: response)
        else { return nil }
        self.url = url
        self.bytes = bytes
        self.validator = validator
        total = response.expectedContentLength > 0 ? response.expectedContentLength : nil
    }

    /// An entity tag is sent as it came, even without the quotes that §8.8.3 requires: a server that omits
    /// them compares it with its own, and any other sends the whole file. A weak tag cannot be used for
    /// parts, and must not be replaced by a date (§13.1.5). A date is weak as well, unless it was long past
    /// when the response was made (§8.8.2.2).
    private static func validator(of response: HTTPURLResponse) -> String? {
        if let tag = response.value(forHTTPHeaderField: "ETag") {
            let isWeak = tag.uppercased().hasPrefix("W/")
            // A server would take a tag that can be parsed as a date for a date.
            let isSound = !tag.isEmpty && tag.utf8.allSatisfy(isPlain) && date(tag) == nil
            return isSound && !isWeak ? tag : nil
        }
        guard let modified = response.value(forHTTPHeaderField: "Last-Modified"),
            let then = date(modified), let date = response.value(forHTTPHeaderField: "Date"),
            let now = self.date(date), now.timeIntervalSince(then) >= 1
        else { return nil }
        return modified
    }

    /// Whether a validator in resume data may contain this byte.
    static func isPlain(_ byte: UInt8) -> Bool { 0x20..<0x7F ~= byte }

    /// Parses an IMF-fixdate.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }

    // MARK: - Resume data

    init?(data: Data) {
        guard let decoded = try? PropertyListDecoder().decode(Self.self, from: data), decoded.bytes > 0 else {
            return nil
        }
        self = decoded
    }

    // MARK: - The requests

    /// Those of `fields` that do not ask for a part.
    static func fieldsForWhole(_ fields: [String: String]) -> [String: String] {
        fields.filter { !["range", "if-range"].contains($0.key.lowercased()) }
    }

    /// The request for the whole file.
    var requestForWhole: URLRequest {
        var request = URLRequest(url: url)
        request.httpShouldHandleCookies = handlesCookies ?? true
        for (name, value) in fields ?? [:] { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// The request for the rest of the file, or for the whole if the file has changed.
    var request: URLRequest { askingForRest(requestForWhole) }

    /// `request` for the rest only, or for the whole if the file has changed on the server.
    func askingForRest(_ request: URLRequest) -> URLRequest {
        var rest = request
        rest.setValue("bytes=\(bytes)-", forHTTPHeaderField: "Range")
        rest.setValue(validator, forHTTPHeaderField: "If-Range")
        return rest
    }

    /// The position of `response`'s body in the file; nil if the response is neither the whole file nor the
    /// rest of the same file, or contradicts itself (RFC 9110 §15.3.7). The rest has no coding: that would be
    /// a part of another representation than the one whose bytes are in the file.
    ///
    /// The complete size must be known from one of the responses: a server may send only part of the rest
    /// (§14.4), which could not be recognized otherwise.
    func offset(of response: URLResponse) -> Int64? {
        guard let response = response as? HTTPURLResponse else { return nil }
        guard response.statusCode == 206 else { return response.statusCode == 200 ? 0 : nil }
        guard response.value(forHTTPHeaderField: "Content-Encoding") == nil,
            let range = Self.range(of: response), range.first == bytes,
            let complete = range.total ?? total, complete == range.last + 1, complete == total ?? complete
        else { return nil }
        // The length that frames the body: a field of several equal numbers is one, too.
        let length = response.expectedContentLength
        guard length < 0 || length == range.last - range.first + 1 else { return nil }
        let name = Self.date(validator) == nil ? "ETag" : "Last-Modified"
        guard response.value(forHTTPHeaderField: name) ?? validator == validator else { return nil }
        return bytes
    }

    /// This resumption with the size of the whole file, which `rest`, the response with the rest, may be the
    /// first to name.
    func completed(by rest: URLResponse) -> DownloadResumption {
        completed(total: (rest as? HTTPURLResponse).flatMap(Self.range(of:))?.total)
    }

    /// This resumption with `known` as the size of the whole file, unless it has one.
    func completed(total known: Int64?) -> DownloadResumption {
        var completed = self
        completed.total = total ?? known
        return completed
    }

    /// The values in Content-Range: `bytes 100-199/200`, or `/*` if the server does not know the length of
    /// the whole (§14.4).
    private static func range(of response: HTTPURLResponse) -> (first: Int64, last: Int64, total: Int64?)? {
        guard let text = response.value(forHTTPHeaderField: "Content-Range")?.lowercased(),
            text.hasPrefix("bytes ")
        else { return nil }
        let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map(number)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < .max else {
            return nil
        }
        let total = parts[1].trimmingCharacters(in: .whitespaces)
        if total == "*" { return (first, last, nil) }
        guard let total = number(total[...]), total > last else { return nil }
        return (first, last, total)
    }

    private static func number(_ text: Substring) -> Int64? {
        let digits = text.trimmingCharacters(in: .whitespaces)
        return digits.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ? Int64(digits) : nil
    }
}

/// The rest of a download's body, which was requested because the connection was lost.
struct RequestedRest: Equatable {
    let resumption: DownloadResumption
    /// The failure of the load if the response is not the rest.
    let failure: LoadFailure

    /// The size of the whole file; nil if the response with this head is not the rest.
    func total(with head: ResponseHead, bodyLength: Int64?, from url: URL?) -> Int64? {
        guard head.status == 206, let url,
            let response = LoadedResponse(url: url, head: head, bodyLength: bodyLength),
            resumption.offset(of: response) == resumption.bytes
        else { return nil }
        return resumption.completed(by: response).total
    }
}

extension Encodable {
    /// Nil in theory only: texts, numbers and URLs can always be encoded.
    var binaryPropertyList: Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try? encoder.encode(self)
    }
}
