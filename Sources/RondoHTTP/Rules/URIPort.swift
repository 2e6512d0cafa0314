package import struct Foundation.URL

// A port has 16 bits. Foundation's parser takes every row of digits for one, and gives none at all where the number
// exceeds an Int: a request would go to the scheme's usual port, which its URL does not name.

/// What the authority of a URI says about the port.
package enum URIPort: Sendable, Equatable {
    /// Nothing, or nothing behind its colon (RFC 3986 §3.2.3 permits that): the usual one of the scheme.
    case usual
    case number(UInt16)
    /// No port has that number: it is 0 or above 65,535, or not a number.
    case impossible

    package init(of url: URL) {
        self.init(authority: URIReference(url.absoluteURL.absoluteString).authority ?? "")
    }

    package init(authority: String) {
        let bytes = authority.utf8
        let host =
            bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes[bytes.index(after: $0)...] } ?? bytes[...]
        // The colons of an IPv6 address stand in brackets.
        let behind = host.lastIndex(of: UInt8(ascii: "]")).map { host[$0...] } ?? host
        guard let colon = behind.firstIndex(of: Grammar.colon) else {
            self = .usual
            return
        }
        let digits = behind[behind.index(after: colon)...]
        if digits.isEmpty {
            self = .usual
        } else if digits.allSatisfy(Grammar.isDigit),
            // Zeros in front change nothing, however many they are.
            let number = UInt16(String(digits.drop { $0 == UInt8(ascii: "0") }) ?? ""), number > 0
        {
            self = .number(number)
        } else {
            self = .impossible
        }
    }
}
