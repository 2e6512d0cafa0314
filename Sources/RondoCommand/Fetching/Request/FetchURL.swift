import Rondo
import RondoHTTP
import RondoStreams

/// A URL as it was written, split into parts as in curl: the parts that the server sees are neither encoded
/// nor decoded.
struct FetchURL: Equatable, Sendable {
    var scheme: String
    var user: String?
    var password: String?
    /// An IPv6 address is in brackets.
    var host: String
    var port: Int?
    var path: String
    var query: String?
    var fragment: String?

    /// - Parameters:
    ///   - defaultScheme: The scheme for text without one; nil means http.
    ///   - keepsDots: True if `/../` and `/./` are kept.
    /// - Throws: `FetchFailure` if the text is no URL.
    init(_ text: String, defaultScheme: String? = nil, keepsDots: Bool = false) throws(FetchFailure) {
        let text = Self.encodingForeign(text.utf8)
        guard !text.isEmpty, !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw Self.malformed(text, "it has blanks or control characters, or is empty")
        }
        var rest = text[...]
        var scheme = defaultScheme ?? "http"
        if let match = text.prefixMatch(of: /([A-Za-z][A-Za-z0-9+.\-]*):(\/{1,3})/) {
            scheme = match.1.lowercased()
            // The URL of a file has no host, or names this machine.
            rest = text[(scheme == "file" ? match.1.endIndex : match.0.endIndex)...]
            if scheme == "file" { rest = rest.dropFirst() }
        } else if text.hasPrefix("data:") {
            (self.scheme, host, path) = ("data", "", String(text.dropFirst(5)))
            return
        }
        self.scheme = scheme
        if let hash = rest.firstIndex(of: "#") {
            // Nothing behind the # is no fragment, as in curl.
            let behind = rest[rest.index(after: hash)...]
            fragment = behind.isEmpty ? nil : String(behind)
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if scheme == "file" {
            if rest.hasPrefix("//") { rest = rest.dropFirst(2) }
            let name = rest.prefix { $0 != "/" }
            guard ["", "localhost", "127.0.0.1"].contains(name.lowercased()) else {
                throw Self.malformed(text, "a file is on this machine")
            }
            (host, path) = ("", String(rest.dropFirst(name.count)))
            // As in curl, which loads the same file whatever the query.
            query = nil
            if !keepsDots { path = URIReference.removingDotSegments(path) }
            return
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        path = slash == rest.endIndex ? "/" : String(rest[slash...])
        host = ""
        try readAuthority(rest[..<slash], of: text)
        if !keepsDots { path = URIReference.removingDotSegments(path) }
    }

    private mutating func readAuthority(_ authority: Substring, of text: String) throws(FetchFailure) {
        var place = authority
        if let at = authority.lastIndex(of: "@") {
            let parts = authority[..<at].split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            user = Self.decoded(parts[0])
            password = parts.count > 1 ? Self.decoded(parts[1]) : nil
            place = authority[authority.index(after: at)...]
        }
        let hostEnd =
            place.first == "["
            ? place.firstIndex(of: "]").map { place.index(after: $0) } ?? place.endIndex
            : place.firstIndex(of: ":") ?? place.endIndex
        host = String(place[..<hostEnd])
        if host.first != "[" { host = host.removingPercentEncoding ?? host }
        var digits = place[hostEnd...]
        if digits.first == ":" {
            digits = digits.dropFirst()
            guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                digits.isEmpty || (Int(digits) ?? 65_536) <= 65_535
            else {
                throw Self.malformed(text, "port number was not a decimal number between 0 and 65535")
            }
            port = Int(digits)
        } else if !digits.isEmpty {
            throw Self.malformed(text, "what follows the host is not a port")
        }
        if host.isEmpty { throw Self.malformed(text, "it names no host") }
        guard Self.isHostName(host) || Self.isAddressInBrackets(host) else {
            throw Self.malformed(text, "bad host name")
        }
        if host.utf8.contains(where: { $0 >= 0x80 }) { host = try Self.inASCII(host, of: text) }
        if port == defaultPort { port = nil }
        // An IPv4 address in another form becomes four decimal numbers.
        if host.first?.isNumber ?? false, let address = Resolver.numeric(host: host, port: 0) {
            host = address.host
        }
    }

    /// A percent sign would be decoded once more by Foundation.
    private static func isHostName(_ host: String) -> Bool {
        host.utf8.allSatisfy { byte in
            byte > 0x20 && byte != 0x7F && !"%/:#?!@{}[]\\$'\"^`*<>=;,+&()|".utf8.contains(byte)
        }
    }

    /// A host in other letters, in the form in which it is looked up (IDNA).
    private static func inASCII(_ host: String, of text: String) throws(FetchFailure) -> String {
        let name = URL(string: "http://\(host)/").map { String($0.absoluteString.dropFirst(7).dropLast()) }
        // The form of some letters has a slash or a colon.
        guard let name, isHostName(name), name.utf8.allSatisfy({ $0 < 0x80 })
        else { throw malformed(text, "the host has letters that no host has") }
        return name
    }

    private static func isAddressInBrackets(_ host: String) -> Bool {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return false }
        let address = host.dropFirst().dropLast()
        let bare = address.prefix { $0 != "%" }
        return bare.contains(":") && bare.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
    }

    /// Percent-encodes the bytes of characters other than ASCII.
    static func encodingForeign(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.contains(where: { $0 >= 0x80 }) else { return String(decoding: bytes, as: UTF8.self) }
        return bytes.map { byte in
            byte < 0x80 ? String(Unicode.Scalar(byte)) : "%" + String(byte, radix: 16)
        }.joined()
    }

    private static func decoded(_ text: Substring) -> String {
        text.removingPercentEncoding ?? String(text)
    }

    static func malformed(_ text: String, _ reason: String) -> FetchFailure {
        FetchFailure(.badURL, "this is not a URL: \(text): \(reason)", status: .malformedURL)
    }

    // MARK: - Derived values

    var isWeb: Bool { scheme == "http" || scheme == "https" }
    var isSecure: Bool { scheme == "https" }
    private var defaultPort: Int? { ["http": 80, "https": 443][scheme] }
    var effectivePort: Int { port ?? defaultPort ?? 0 }
    var authority: String { port.map { "\(host):\($0)" } ?? host }

    /// Path and query as they are sent.
    var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The whole URL without user and password.
    var text: String {
        if scheme == "data" { return "data:" + path }
        let end = fragment.map { "#" + $0 } ?? ""
        return "\(scheme)://\(authority)\(target)\(end)"
    }

    /// The whole URL with user and password.
    var textWithUser: String {
        guard let user else { return text }
        let secret = password.map { ":" + $0 } ?? ""
        let end = fragment.map { "#" + $0 } ?? ""
        return "\(scheme)://\(user)\(secret)@\(authority)\(target)\(end)"
    }

    /// The URL for the library; without the target if Foundation cannot express that.
    var url: URL? {
        switch scheme {
        case "http", "https":
            URL(string: "\(scheme)://\(authority)\(target)") ?? URL(string: "\(scheme)://\(authority)/")
        case "file": URL(fileURLWithPath: fileSystemPath)
        default: URL(string: text)
        }
    }

    /// The path for the file system. Behind a last slash is a folder alone: Foundation takes a last slash
    /// away, and a dot behind it not.
    private var fileSystemPath: String {
        let path = path.removingPercentEncoding ?? path
        return path.hasSuffix("/") ? path + "." : path
    }

    /// The last part of the path, unchanged; nil if the path ends with a slash.
    var lastName: String? {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        return name.isEmpty ? nil : String(name)
    }

    func isSameOrigin(as other: FetchURL) -> Bool {
        scheme == other.scheme && host.lowercased() == other.host.lowercased()
            && effectivePort == other.effectivePort
    }

    func isSameHost(as other: FetchURL) -> Bool {
        host.lowercased() == other.host.lowercased() && effectivePort == other.effectivePort
            && scheme == other.scheme
    }

    /// The text of the URL to which a Location field leads, relative to this URL. It need not be loadable.
    func destination(of location: String) -> String {
        var target = URIReference(mending: location).resolved(against: URIReference(text))
        // A fragment of the server's is dropped, as in curl.
        target.fragment = nil
        return target.text
    }

    /// The URL to which a Location field leads.
    ///
    /// - Throws: `FetchFailure` if it is no URL, or one of a scheme that is not loaded. No scheme is guessed,
    ///   as one is for a typed address: `localhost:80/` is a URL of the scheme localhost.
    func following(_ location: String, keepsDots: Bool) throws(FetchFailure) -> FetchURL {
        let target = destination(of: location)
        let reference = URIReference(target)
        guard let scheme = reference.scheme?.lowercased(), FetchOperation.loadedSchemes.contains(scheme)
        else {
            throw FetchFailure(
                .unsupportedURL, "a redirect leads to \(target), which is not followed",
                status: .unsupportedScheme)
        }
        guard target.hasPrefix("data:") || reference.authority != nil || reference.path.hasPrefix("/") else {
            throw Self.malformed(target, "no slash follows its scheme")
        }
        return try FetchURL(target, keepsDots: keepsDots)
    }

    /// The URL with more parts in its query, empty ones too. As in curl, none is separated from a query that
    /// ends with an ampersand, and a # in them begins the fragment.
    func adding(query parts: [String]) -> FetchURL {
        // A file's URL has no query.
        if parts.isEmpty || scheme == "file" { return self }
        var url = self
        var more = Self.encodingForeign(parts.joined(separator: "&").utf8)
        if let hash = more.firstIndex(of: "#") {
            url.fragment = String(more[more.index(after: hash)...]) + (fragment.map { "#" + $0 } ?? "")
            more = String(more[..<hash])
        } else if more.isEmpty, query?.isEmpty ?? true {
            url.query = nil
            return url
        }
        let before = query ?? ""
        url.query = before + (before.isEmpty || before.hasSuffix("&") ? "" : "&") + more
        return url
    }
}
