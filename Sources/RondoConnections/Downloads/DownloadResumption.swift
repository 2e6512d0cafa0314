internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// What it takes to go on with a download that broke off (rule UC-71): where the rest begins, and how the
/// server can tell that the file is still the same (RFC 9110 §13.1.5 and §14).
struct DownloadResumption: Codable, Equatable {
    let url: URL
    /// Bytes that are in the file already.
    var bytes: Int64
    /// A strong ETag or a Last-Modified date, for If-Range.
    let validator: String
    /// Bytes of the whole; nil where the server has not said.
    let total: Int64?

    /// Nil where the server cannot continue, or could not tell that it continues with the same file.
    init?(_ response: HTTPURLResponse, bytes: Int64, method: String) {
        guard method == "GET", response.statusCode == 200 || response.statusCode == 206, bytes > 0,
            let url = response.url,
            response.value(forHTTPHeaderField: "Accept-Ranges")?.lowercased() != "none",
            response.value(forHTTPHeaderField: "Content-Encoding") == nil,
            let validator = Self.validator(of: response)
        else { return nil }
        self.url = url
        self.bytes = bytes
        self.validator = validator
        total =
            response.statusCode == 206
            ? Self.range(of: response)?.total
            : response.expectedContentLength > 0 ? response.expectedContentLength : nil
    }

    /// An entity tag is sent as it came, without quotes too (§8.8.3 asks for them): a server that leaves them out compares it
    /// with what it had sent, and any other sends the whole. A weak one is of no use for parts, and a date is not to be sent
    /// in its place (§13.1.5); a date is weak as well, unless it was long past when the response was made (§8.8.2.2).
    private static func validator(of response: HTTPURLResponse) -> String? {
        if let tag = response.value(forHTTPHeaderField: "ETag") {
            let isWeak = tag.uppercased().hasPrefix("W/")
            // What reads as a date would be compared as one.
            let isSound = !tag.isEmpty && tag.utf8.allSatisfy(isPlain) && date(tag) == nil
            return isSound && !isWeak ? tag : nil
        }
        guard let modified = response.value(forHTTPHeaderField: "Last-Modified"),
            let then = date(modified), let date = response.value(forHTTPHeaderField: "Date"),
            let now = self.date(date), now.timeIntervalSince(then) >= 1
        else { return nil }
        return modified
    }

    /// Whether resume data can name a validator that holds this byte.
    static func isPlain(_ byte: UInt8) -> Bool { 0x20..<0x7F ~= byte }

    /// An IMF-fixdate.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }

    // MARK: - Kept

    init?(data: Data) {
        guard let decoded = try? PropertyListDecoder().decode(Self.self, from: data), decoded.bytes > 0 else {
            return nil
        }
        self = decoded
    }

    var data: Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try? encoder.encode(self)
    }

    // MARK: - Asked for

    /// The value of Range for the rest.
    var range: String { "bytes=\(bytes)-" }

    /// The request for the rest, or for the whole if the file has changed.
    var request: URLRequest {
        var request = URLRequest(url: url)
        request.setValue(range, forHTTPHeaderField: "Range")
        request.setValue(validator, forHTTPHeaderField: "If-Range")
        return request
    }

    /// Where the body of `response` belongs in the file; nil: it is no whole, and not the rest of the same
    /// file, or contradicts itself (RFC 9110 §15.3.7).
    func offset(of response: URLResponse) -> Int64? {
        guard let response = response as? HTTPURLResponse else { return nil }
        guard response.statusCode == 206 else { return response.statusCode == 200 ? 0 : nil }
        guard let range = Self.range(of: response), range.first == bytes else { return nil }
        if let complete = range.total {
            guard complete == range.last + 1, complete == total ?? complete else { return nil }
        } else if let total, total != range.last + 1 {
            return nil
        }
        if let text = response.value(forHTTPHeaderField: "Content-Length"), let length = Int64(text) {
            guard length == range.last - range.first + 1 else { return nil }
        }
        let name = Self.date(validator) == nil ? "ETag" : "Last-Modified"
        guard response.value(forHTTPHeaderField: name) ?? validator == validator else { return nil }
        return bytes
    }

    /// What Content-Range says: `bytes 100-199/200`, or `/*` where the server does not know how long the whole is
    /// (§14.4).
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
