package import struct Foundation.Date

/// The parts of a Set-Cookie field's value (RFC 6265bis §5.6), before any decision about the cookie.
///
/// An attribute that cannot be read is ignored, as the RFC requires: a server that writes one attribute wrong
/// has still set its cookie.
package struct SetCookie: Sendable, Equatable {
    /// Never empty.
    package var name: String
    package var value: String
    /// In lower case, without a leading dot; nil if the field has no Domain.
    package var domain: String?
    /// Nil if the field has no Path that begins with a slash.
    package var path: String?
    package var expires: Date?
    /// Seconds.
    package var maxAge: Int64?
    package var isSecure = false
    package var isHTTPOnly = false

    /// The most bytes of name and value together; a longer cookie is ignored (§5.6).
    package static let maximumSize = 4096
    /// The most bytes of an attribute's value; a longer attribute is ignored (§5.6).
    package static let maximumAttributeSize = 1024

    /// The values of the Set-Cookie fields among `fields`, but for those whose cookie has a name or value
    /// that is not UTF-8: cookies are kept as text, and the server would get other bytes back. Of an
    /// attribute the server gets none.
    package static func values(in fields: HeaderFields) -> [String] {
        var values: [String] = []
        fields.forEachValue(of: "Set-Cookie") { value in
            if let text = HeaderFields.returnableText(value) { return values.append(text) }
            let end = value.firstIndex(of: Grammar.semicolon) ?? value.endIndex
            let pair = UnsafeBufferPointer(rebasing: value[..<end])
            guard let pair = HeaderFields.returnableText(pair) else { return }
            values.append(pair + HeaderFields.text(UnsafeBufferPointer(rebasing: value[end...])))
        }
        return values
    }

    /// Returns nil if the field sets no cookie: it has no name (RFC 6265 §5.2; browsers have begun to keep
    /// such cookies, which servers misread), is too long, or contains a control character.
    package init?(_ field: String) {
        var field = field
        guard let cookie = field.withUTF8({ SetCookie($0) }) else { return nil }
        self = cookie
    }

    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    /// Parses the text's own bytes, because the indices of a `String` take twice as long.
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

    /// The last attribute of a kind is used (§5.7).
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
        // A number that does not fit is as far away as possible.
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
