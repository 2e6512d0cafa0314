internal import Glibc

/// What the Cache-Control fields of a message say to a private cache (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// `private`, `s-maxage` and `proxy-revalidate` are for shared caches and have no place here.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    /// A cache that knows the status code may overlook `noStore`; no other cache may store the response (§5.2.2.3).
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
            // Nearly always it is spelled in the usual way.
            return memcmp(start, other.utf8Start, name.count) == 0
                || Grammar.equalIgnoringCase(name, other.utf8Bytes)
        }
        // The first of a kind counts (§4.2.1).
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

    /// The largest number of seconds that is kept, 68 years (§1.2.2).
    private static let maximumSeconds: Int64 = 1 << 31

    /// 0: it is no number.
    static func seconds(_ digits: some Sequence<UInt8>) -> Int64 {
        var seconds: Int64 = 0
        for digit in digits {
            guard Grammar.isDigit(digit) else { return 0 }
            seconds = min(10 * seconds + Int64(digit - UInt8(ascii: "0")), maximumSeconds)
        }
        return seconds
    }

    /// Calls `body` with the name of each directive, and its argument, which may be quoted, in seconds; nil: it has none.
    /// Nothing is allocated, or nearly never: it is done for every response that may be stored.
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
