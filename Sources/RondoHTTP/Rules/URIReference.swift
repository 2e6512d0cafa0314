// RFC 3986, because Foundation's resolution on Linux does not follow it everywhere. A reference is split by
// the rule of appendix B, merged and stripped of dot segments by §5.2, and recomposed by §5.3.

/// A URI or a relative reference, in its five parts. An absent part differs from an empty one.
package struct URIReference: Sendable, Equatable {
    package var scheme: String?
    package var authority: String?
    package var path: String
    package var query: String?
    package var fragment: String?

    /// Splits `text`. Every text is a reference; its characters are not checked.
    package init(_ text: String) {
        var rest = text.utf8[...]
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            fragment = String(rest[rest.index(after: hash)...])
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        // Only text that can be a scheme is one: in "a/b:c" and "1:2" the colon belongs to the path.
        let schemeEnd = rest.firstIndex { !Self.isSchemeByte($0) }
        if let schemeEnd, rest[schemeEnd] == Grammar.colon, let first = rest.first, Self.isLetter(first) {
            scheme = String(rest[..<schemeEnd])
            rest = rest[rest.index(after: schemeEnd)...]
        }
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        path = String(rest) ?? ""
    }

    /// Resolves this reference against `base` (§5.2.2, strictly: `http:g` keeps its scheme and is not
    /// relative).
    package func resolved(against base: URIReference) -> URIReference {
        var target = self
        if scheme != nil || authority != nil {
            target.scheme = scheme ?? base.scheme
            target.path = Self.removingDotSegments(path)
            return target
        }
        target.scheme = base.scheme
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.hasPrefix("/") {
            target.path = Self.removingDotSegments(path)
        } else {
            target.path = Self.removingDotSegments(base.merging(path))
        }
        return target
    }

    /// The reference as text (§5.3).
    package var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    // MARK: Paths

    /// The base's path up to its last slash, followed by `relative` (§5.2.3).
    private func merging(_ relative: String) -> String {
        if authority != nil, path.isEmpty { return "/" + relative }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return relative }
        return String(path[...slash]) + relative
    }

    /// Removes dot segments (§5.2.4), segment by segment instead of character by character: "." is dropped,
    /// ".." also removes the segment before it, and either at the end leaves its slash.
    package static func removingDotSegments(_ path: String) -> String {
        let isAbsolute = path.hasPrefix("/")
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
            .dropFirst(isAbsolute ? 1 : 0)
        var kept: [Substring] = []
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return (isAbsolute ? "/" : "") + kept.joined(separator: "/")
    }

    // MARK: Bytes

    private static func isLetter(_ byte: UInt8) -> Bool {
        Grammar.lowercased(byte) &- 0x61 < 26
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || Grammar.isDigit(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
    }
}

extension URIReference {
    /// Percent-encodes every byte of `text` that a URI must not contain (§2), which servers forget: spaces,
    /// bytes that are not ASCII (as UTF-8), quotes and brackets, and a `%` that encodes nothing. Characters
    /// that are already encoded stay. Whitespace at the ends is dropped. The authority is not changed: a host
    /// in other letters is left to resolvers that know IDNA, brackets belong to IPv6, and an invalid host
    /// must not become a valid one.
    package init(mending text: String) {
        self.init(text.trimmingWhitespace())
        path = Self.encoding(path)
        query = query.map(Self.encoding)
        fragment = fragment.map(Self.encoding)
    }

    private static func encoding(_ part: String) -> String {
        let bytes = Array(part.utf8)
        if bytes.allSatisfy(isAllowed) { return part }
        var encoded: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            let isTriplet =
                byte == percent && index + 2 < bytes.count
                && bytes[index + 1...index + 2].allSatisfy { Grammar.hexadecimalValue($0) != nil }
            if isAllowed(byte) || isTriplet {
                encoded.append(byte)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += (digits.count < 2 ? "%0\(digits)" : "%\(digits)").utf8
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static let percent = UInt8(ascii: "%")

    /// Unreserved and reserved characters that are allowed in a path, query or fragment: no brackets, no `#`.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("),
            UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "/"), UInt8(ascii: "?"):
            true
        default:
            isLetter(byte) || Grammar.isDigit(byte)
        }
    }
}

extension String {
    /// This string without spaces and control characters at either end.
    fileprivate func trimmingWhitespace() -> String {
        let isBlank = { (byte: UInt8) in byte <= Grammar.space }
        let start = utf8.firstIndex { !isBlank($0) } ?? utf8.endIndex
        let end = utf8.lastIndex { !isBlank($0) }.map(utf8.index(after:)) ?? start
        return String(self[start..<end])
    }
}
