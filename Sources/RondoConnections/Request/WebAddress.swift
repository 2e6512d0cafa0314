internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The parts of an http or https URL that a request needs.
///
/// Nearly all URLs are already in canonical form, plain ASCII without a user or an IPv6 address, and are
/// parsed here byte by byte; the others are left to Foundation's parser, which takes ten times as long.
///
/// A reference inside, since addresses are passed on often and never change.
struct WebAddress: Sendable {
    private final class Values: Sendable {
        let isSecure: Bool
        let host: String
        let port: Int
        let namesPort: Bool
        /// The host as the URL writes it, but without the zone of an IPv6 address, if that may differ from
        /// `host`.
        let encodedHost: String?
        let target: String
        let isPlain: Bool
        let name: String

        init(
            isSecure: Bool, host: String, port: Int, namesPort: Bool, encodedHost: String? = nil,
            target: String, isPlain: Bool, name: String
        ) {
            self.isPlain = isPlain
            self.name = name
            self.isSecure = isSecure
            self.host = host
            self.port = port
            self.namesPort = namesPort
            self.encodedHost = encodedHost
            self.target = target
        }
    }

    private let values: Values

    var isSecure: Bool { values.isSecure }
    /// A name or an address, the latter without brackets.
    var host: String { values.host }
    /// The default port if the URL names none.
    var port: Int { values.port }
    /// The value of the Host field: the host, and the port if the URL names one.
    var authority: String {
        let host = values.encodedHost ?? values.host
        return values.namesPort ? "\(host):\(values.port)" : host
    }
    /// Whether requests to both have the same Host field, and go to the same port.
    func hasAuthority(of other: WebAddress) -> Bool {
        values.port == other.values.port && values.namesPort == other.values.namesPort
            && values.host == other.values.host && values.encodedHost == other.values.encodedHost
    }
    /// Path and query (origin-form, RFC 9112 §3.2.1).
    var target: String { values.target }
    /// Whether the URL is in the form in which it is sent (rule UC-29), ASCII, and without a user.
    var isPlain: Bool { values.isPlain }
    /// The whole URL without its fragment, which is not sent to servers.
    var name: String { values.name }

    /// Nil unless it is an http or https URL with a host and, if it names a port, a valid one.
    init?(_ url: URL) {
        if let plain = Self.read(url.absoluteString) {
            self = plain
            return
        }
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = url.host, !host.isEmpty, let encodedHost = parts.percentEncodedHost,
            URIPort(of: url) != .impossible
        else { return nil }
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        values = Values(
            isSecure: scheme == "https", host: host, port: parts.port ?? (scheme == "https" ? 443 : 80),
            namesPort: parts.port != nil, encodedHost: Self.withoutZone(encodedHost),
            target: parts.percentEncodedQuery.map { path + "?" + $0 } ?? path, isPlain: false,
            name: Self.name(of: url))
    }

    private init(_ values: Values) { self.values = values }

    /// Removes the zone of an IPv6 address in brackets, which has a meaning on this machine only: it is not
    /// sent (RFC 6874 §4).
    private static func withoutZone(_ host: String) -> String {
        guard host.hasPrefix("["), let zone = host.firstIndex(of: "%") else { return host }
        return "\(host[..<zone])]"
    }

    /// `target` as it is sent to a proxy: behind the URL's scheme and authority if it is a path
    /// (absolute-form, RFC 9112 §3.2.2), and these alone for `*` (§3.2.4). A target in another form, such as
    /// a whole URL, stays as it is.
    func absoluteForm(_ target: String) -> String {
        let root = "\(isSecure ? "https" : "http")://\(authority)"
        if target == "*" { return root }
        return target.hasPrefix("/") ? root + target : target
    }

    /// The whole URL without its fragment, which is not sent to servers.
    static func name(of url: URL) -> String {
        let text = url.absoluteString
        let fragment = text.utf8.withContiguousStorageIfAvailable { bytes in
            bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.count
        }
        guard let end = fragment else { return String(text.prefix { $0 != "#" }) }
        return end == text.utf8.count ? text : String(text.utf8.prefix(end)) ?? text
    }

    // MARK: - Plain URLs

    /// The positions of the parts in a plain URL.
    private struct Parts {
        var isSecure = false
        var host = 0..<0
        var port = 0
        var authorityEnd = 0
        var end = 0
    }

    /// Whether the URL would be `isPlain`.
    static func isPlain(_ url: URL) -> Bool {
        url.absoluteString.utf8.withContiguousStorageIfAvailable { parts(of: $0) != nil } ?? false
    }

    /// Nil if the URL needs Foundation's parser.
    private static func read(_ text: String) -> WebAddress? {
        text.utf8.withContiguousStorageIfAvailable { bytes -> WebAddress? in
            guard let parts = parts(of: bytes) else { return nil }
            let part = { (range: Range<Int>) in
                String(decoding: UnsafeBufferPointer(rebasing: bytes[range]), as: UTF8.self)
            }
            return WebAddress(
                Values(
                    isSecure: parts.isSecure, host: part(parts.host), port: parts.port,
                    namesPort: parts.authorityEnd > parts.host.upperBound,
                    target: part(parts.authorityEnd..<parts.end), isPlain: true,
                    name: parts.end == bytes.count ? text : part(0..<parts.end)))
        } ?? nil
    }

    private static func parts(of bytes: UnsafeBufferPointer<UInt8>) -> Parts? {
        var parts = Parts()
        var index: Int
        if begins(bytes, with: "http://") {
            index = 7
        } else if begins(bytes, with: "https://") {
            (parts.isSecure, index) = (true, 8)
        } else {
            return nil
        }
        let hostStart = index
        while index < bytes.count, isOfPlainHost(bytes[index]) { index += 1 }
        parts.host = hostStart..<index
        parts.port = parts.isSecure ? 443 : 80
        if index < bytes.count, bytes[index] == Grammar.colon {
            let start = index + 1
            index = start
            parts.port = 0
            while index < bytes.count, Grammar.isDigit(bytes[index]), index - start < 5 {
                parts.port = parts.port * 10 + Int(bytes[index] - UInt8(ascii: "0"))
                index += 1
            }
            // The port is empty or has a leading zero.
            if index == start || bytes[start] == UInt8(ascii: "0") { return nil }
        }
        guard !parts.host.isEmpty, parts.port <= 65_535, index < bytes.count,
            bytes[index] == UInt8(ascii: "/")
        else { return nil }
        parts.authorityEnd = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "#") {
            guard Grammar.isTarget(bytes[index]) else { return nil }
            index += 1
        }
        parts.end = index
        return parts
    }

    private static func begins(_ bytes: UnsafeBufferPointer<UInt8>, with text: StaticString) -> Bool {
        guard let start = bytes.baseAddress, bytes.count >= text.utf8CodeUnitCount else { return false }
        return memcmp(start, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// Whether the byte may occur in a plain host: upper-case letters would have to be made canonical.
    private static func isOfPlainHost(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "."):
            true
        default: false
        }
    }
}
