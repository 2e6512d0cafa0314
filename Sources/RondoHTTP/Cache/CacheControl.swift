internal import Glibc

/// The directives in the Cache-Control fields of a message, for a private cache (RFC 9111 §5.2, RFC 5861, RFC
/// 8246).
///
/// `s-maxage` and `proxy-revalidate` are for shared caches and are ignored.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    /// A cache that knows the status code may ignore `noStore`; no other cache may store the response
    /// (§5.2.2.3).
    package var mustUnderstand = false
    /// Also true for a directive with field names, which are not evaluated (§5.2.2.4 allows that).
    package var noCache = false
    package var mustRevalidate = false
    package var isPublic = false
    package var isPrivate = false
    package var isImmutable = false
    package var onlyIfCached = false

    // In seconds. An unreadable value counts as 0, the most cautious one (§4.2.1).

    package var maxAge: Int64?
    package var minFresh: Int64?
    /// `.max` if the directive has no value, which accepts any staleness.
    package var maxStale: Int64?
    package var staleWhileRevalidate: Int64?
    package var staleIfError: Int64?

    package init() {}

    /// Pragma is used only if there is no Cache-Control at all (§5.4), and only in requests.
    package init(_ fields: HeaderFields, isRequest: Bool) {
        var isThere = false
        fields.forEachValue(of: "Cache-Control") { value in
            isThere = true
            Self.forEachDirective(in: value) { take($0, $1) }
        }
        if !isThere, isRequest, fields.contains("Pragma", token: "no-cache") { noCache = true }
    }

    private typealias Bytes = UnsafeBufferPointer<UInt8>

    private mutating func take(_ name: Bytes, _ seconds: Int64?) {
        func isNamed(_ other: StaticString) -> Bool {
            guard let start = name.baseAddress, name.count == other.utf8CodeUnitCount else { return false }
            // Nearly always the name has its usual spelling.
            return memcmp(start, other.utf8Start, name.count) == 0
                || Grammar.equalIgnoringCase(name, other.utf8Bytes)
        }
        // The first directive of a kind is used (§4.2.1).
        func note(_ noted: inout Int64?, otherwise missing: Int64 = 0) {
            if noted == nil { noted = seconds ?? missing }
        }
        if isNamed("max-age") {
            note(&maxAge)
        } else if isNamed("no-store") {
            noStore = true
        } else if isNamed("no-cache") {
            noCache = true
        } else if isNamed("must-revalidate") {
            mustRevalidate = true
        } else if isNamed("public") {
            isPublic = true
        } else if isNamed("private") {
            isPrivate = true
        } else if isNamed("immutable") {
            isImmutable = true
        } else if isNamed("must-understand") {
            mustUnderstand = true
        } else if isNamed("only-if-cached") {
            onlyIfCached = true
        } else if isNamed("min-fresh") {
            note(&minFresh)
        } else if isNamed("max-stale") {
            note(&maxStale, otherwise: .max)
        } else if isNamed("stale-while-revalidate") {
            note(&staleWhileRevalidate)
        } else if isNamed("stale-if-error") {
            note(&staleIfError)
        }
    }

    /// The upper limit for a number of seconds, 68 years (§1.2.2).
    private static let maximumSeconds: Int64 = 1 << 31

    /// Returns 0 for text that is not a number.
    static func seconds(_ digits: some Sequence<UInt8>) -> Int64 {
        var seconds: Int64 = 0
        for digit in digits {
            guard Grammar.isDigit(digit) else { return 0 }
            seconds = min(10 * seconds + Int64(digit - UInt8(ascii: "0")), maximumSeconds)
        }
        return seconds
    }

    /// Calls `body` with the name of each directive and its argument, quoted or not, in seconds; nil if it
    /// has none. This allocates hardly ever, since it is done for every response that may be stored.
    private static func forEachDirective(in value: Bytes, _ body: (_ name: Bytes, _ seconds: Int64?) -> Void)
    {
        var rest = value[...]
        while true {
            rest = rest.drop { Grammar.isWhitespace($0) || $0 == Grammar.comma }
            guard !rest.isEmpty else { return }
            let name = rest.prefix { $0 != Grammar.comma && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...]
            var seconds: Int64?
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst().drop(while: Grammar.isWhitespace)
                if rest.first == UInt8(ascii: "\"") {
                    seconds = Self.seconds(quoted(&rest))
                    rest = rest.drop { $0 != Grammar.comma }
                } else {
                    let text = rest.prefix { $0 != Grammar.comma }
                    rest = rest[text.endIndex...]
                    seconds = Self.seconds(Grammar.trimmed(Bytes(rebasing: text)))
                }
            }
            body(Grammar.trimmed(Bytes(rebasing: name)), seconds)
        }
    }

    private static func quoted(_ rest: inout Slice<Bytes>) -> [UInt8] {
        var text: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            text.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        }
        return text
    }
}
