package import struct Foundation.URL

// A port has 16 bits. Foundation's parser accepts any sequence of digits as a port, and returns none at all
// if the number exceeds an Int: the request would go to the scheme's default port, which its URL does not
// name.

/// The port in the authority of a URI.
package enum URIPort: Sendable, Equatable {
    /// The default port of the scheme: there is no port, or nothing after the colon (RFC 3986 §3.2.3 permits
    /// that).
    case usual
    case number(UInt16)
    /// Not a possible port: 0, above 65,535, or not a number.
    case impossible

    package init(of url: URL) {
        self.init(authority: URIReference(url.absoluteURL.absoluteString).authority ?? "")
    }

    package init(authority: String) {
        let bytes = authority.utf8
        let host =
            bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes[bytes.index(after: $0)...] } ?? bytes[...]
        // The colons of an IPv6 address are inside brackets.
        let behind = host.lastIndex(of: UInt8(ascii: "]")).map { host[$0...] } ?? host
        guard let colon = behind.firstIndex(of: Grammar.colon) else {
            self = .usual
            return
        }
        let digits = behind[behind.index(after: colon)...]
        if digits.isEmpty {
            self = .usual
        } else if digits.allSatisfy(Grammar.isDigit),
            // Leading zeros do not matter, however many there are.
            let number = UInt16(String(digits.drop { $0 == UInt8(ascii: "0") }) ?? ""), number > 0
        {
            self = .number(number)
        } else {
            self = .impossible
        }
    }
}
