package import struct Foundation.Date

/// The value of a Set-Cookie field, taken apart (RFC 6265bis §5.6) and not yet judged.
///
/// An attribute that is not understood is passed over, as the RFC demands: a server that writes one attribute wrong has
/// still set its cookie.
package struct SetCookie: Sendable, Equatable {
    /// Never empty.
    package var name: String
    package var value: String
    /// In lower case, without a leading dot; nil if there was none.
    package var domain: String?
    /// Nil where there was none, or none that begins with a slash.
    package var path: String?
    package var expires: Date?
    /// Seconds.
    package var maxAge: Int64?
    package var isSecure = false
    package var isHTTPOnly = false

    /// Bytes of name and value together; a longer cookie is no cookie (§5.6).
    package static let maximumSize = 4096
    /// Bytes of an attribute's value; a longer one is passed over (§5.6).
    package static let maximumAttributeSize = 1024

    /// Nil where the field sets nothing: it has no name (RFC 6265 §5.2; browsers have begun to keep such
    /// cookies, which servers read as something else), is too long, or holds a control character.
    package init?(_ field: String) {
        var field = field
        guard let cookie = field.withUTF8({ SetCookie($0) }) else { return nil }
        self = cookie
    }

    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    /// Of the text's own bytes: by the indices of a `String` it takes twice as long.
    private init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        let isControl = { (byte: UInt8) in (byte < Grammar.space && byte != Grammar.tab) || byte == 0x7F }
        if bytes.contains(where: isControl) { return nil }
        let parts = bytes.split(separator: Grammar.semicolon, omittingEmptySubsequences: false)
        let (name, value) = Self.pair(parts.first ?? bytes[...])
        guard let value, !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumSize else {
            return nil
        }
        self.name = name
        self.value = value
        for part in parts.dropFirst() {
            let (name, value) = Self.pair(part)
            if (value ?? "").utf8.count <= Self.maximumAttributeSize { take(name, value ?? "") }
        }
    }

    /// The last of a kind counts (§5.7).
    private mutating func take(_ name: String, _ value: String) {
        switch name.lowercased() {
        case "expires": expires = CookieDate.parse(value) ?? expires
        case "max-age": maxAge = Self.seconds(value) ?? maxAge
        case "domain":
            let domain = value.hasPrefix(".") ? String(value.dropFirst()) : value
            self.domain = domain.isEmpty ? self.domain : domain.lowercased()
        case "path": path = value.hasPrefix("/") ? value : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        default: break
        }
    }

    private static func seconds(_ text: String) -> Int64? {
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy(Grammar.isDigit) else { return nil }
        // What does not fit is far away.
        return Int64(text) ?? (digits.count < text.utf8.count ? 0 : .max)
    }

    /// `name = value`, blanks around both dropped; no value where there is no `=`.
    private static func pair(_ bytes: Bytes) -> (String, String?) {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { return (trimmed(bytes), nil) }
        return (trimmed(bytes[..<equals]), trimmed(bytes[bytes.index(after: equals)...]))
    }

    private static func trimmed(_ bytes: Bytes) -> String {
        var bytes = bytes.drop(while: Grammar.isWhitespace)
        while let last = bytes.last, Grammar.isWhitespace(last) { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
