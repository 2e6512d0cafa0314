/// What the Cache-Control fields of a message say to a private cache (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// `private`, `s-maxage` and `proxy-revalidate` are for shared caches and have no place here.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    /// Whoever knows the status code may overlook `noStore`; nobody else may store the response (§5.2.2.3).
    package var mustUnderstand = false
    /// Also with field names: what may be reused without them is not told apart (§5.2.2.4 allows that).
    package var noCache = false
    package var mustRevalidate = false
    package var isPublic = false
    package var isPrivate = false
    package var isImmutable = false
    package var onlyIfCached = false

    // Seconds. One that cannot be read counts as 0, the most cautious (§4.2.1).

    package var maxAge: Int64?
    package var minFresh: Int64?
    /// `.max` where it has no value: any staleness will do.
    package var maxStale: Int64?
    package var staleWhileRevalidate: Int64?
    package var staleIfError: Int64?

    package init() {}

    /// Pragma counts only where there is no Cache-Control at all (§5.4), and only in requests.
    package init(_ fields: HeaderFields, isRequest: Bool) {
        if fields.has("Cache-Control") {
            for value in fields.values(for: "Cache-Control") {
                for directive in Self.directives(in: value) { take(directive) }
            }
        } else if isRequest, fields.contains("Pragma", token: "no-cache") {
            noCache = true
        }
    }

    private mutating func take(_ directive: (name: String, value: String?)) {
        switch directive.name.lowercased() {
        case "no-store": noStore = true
        case "must-understand": mustUnderstand = true
        case "no-cache": noCache = true
        case "must-revalidate": mustRevalidate = true
        case "public": isPublic = true
        case "private": isPrivate = true
        case "immutable": isImmutable = true
        case "only-if-cached": onlyIfCached = true
        case "max-age": Self.set(&maxAge, directive.value)
        case "min-fresh": Self.set(&minFresh, directive.value)
        case "max-stale" where directive.value == nil: maxStale = maxStale ?? .max
        case "max-stale": Self.set(&maxStale, directive.value)
        case "stale-while-revalidate": Self.set(&staleWhileRevalidate, directive.value)
        case "stale-if-error": Self.set(&staleIfError, directive.value)
        default: break
        }
    }

    /// The largest number of seconds that is kept, 68 years (§1.2.2).
    private static let maximumSeconds: Int64 = 1 << 31

    /// The first of a kind counts (§4.2.1).
    private static func set(_ seconds: inout Int64?, _ value: String?) {
        if seconds == nil { seconds = Self.seconds(value ?? "") }
    }

    static func seconds(_ text: String) -> Int64 {
        guard !text.isEmpty, text.utf8.allSatisfy(Grammar.isDigit) else { return 0 }
        return min(Int64(text) ?? maximumSeconds, maximumSeconds)
    }

    /// Names with or without a value, which may be quoted.
    static func directives(in value: String) -> [(name: String, value: String?)] {
        var directives: [(name: String, value: String?)] = []
        var rest = Array(value.utf8)[...]
        let isBlank = { (byte: UInt8) in Grammar.isWhitespace(byte) || byte == Grammar.comma }
        while true {
            rest = rest.drop(while: isBlank)
            guard !rest.isEmpty else { return directives }
            let name = rest.prefix { $0 != Grammar.comma && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...]
            var argument: String?
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst().drop(while: Grammar.isWhitespace)
                if rest.first == UInt8(ascii: "\"") {
                    argument = quoted(&rest)
                    rest = rest.drop { $0 != Grammar.comma }
                } else {
                    let text = rest.prefix { $0 != Grammar.comma }
                    rest = rest[text.endIndex...]
                    argument = trimmed(text)
                }
            }
            directives.append((trimmed(name), argument))
        }
    }

    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String {
        var text: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            text.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        var bytes = bytes.drop(while: Grammar.isWhitespace)
        while let last = bytes.last, Grammar.isWhitespace(last) { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
