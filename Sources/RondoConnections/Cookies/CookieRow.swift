internal import RondoCore
internal import RondoHTTP

/// The row of one cookie in the file.
struct CookieRow: Equatable {
    let key: Cookie.Key
    /// Nil if the cookie is gone, and only has to be removed from Foundation's file.
    let cookie: Cookie?
    /// The digest of the cookie that Foundation's own file has under the same storage key, until that file is
    /// written again.
    let replaced: Int64?
    /// The time of the last change to the cookie that the writing process knows: a row with a later one, of
    /// another process, stays as it is.
    let updatedAt: Date
    /// Whether the writing process knows the cookie from this row alone, which it does not make anew if
    /// another process has removed it since.
    let isOnlyRead: Bool

    /// - Parameter updatedAt: Nil for the cookie's own time.
    init(
        key: Cookie.Key, cookie: Cookie?, replaced: Int64?, updatedAt: Date? = nil, isOnlyRead: Bool = false
    ) {
        (self.key, self.cookie, self.replaced, self.isOnlyRead) = (key, cookie, replaced, isOnlyRead)
        self.updatedAt = updatedAt ?? cookie?.updatedAt ?? Date(timeIntervalSince1970: 0)
    }

    // MARK: Columns

    /// The columns of a row.
    struct Columns: Equatable {
        var domain: String
        var isHostOnly: Int64
        var path: String
        var name: String
        /// Nil if the cookie is gone.
        var value: String?
        // Seconds since 1970.
        var expires: Double
        var created: Double
        var updated: Double
        var flags: Int64
        var replaced: Int64?
    }

    private static let secureFlag: Int64 = 1
    private static let httpOnlyFlag: Int64 = 2

    var columns: Columns {
        Columns(
            domain: key.domain, isHostOnly: key.isHostOnly ? 1 : 0, path: key.path, name: key.name,
            value: cookie?.value, expires: cookie?.expires?.timeIntervalSince1970 ?? 0,
            created: cookie?.createdAt.timeIntervalSince1970 ?? 0,
            updated: updatedAt.timeIntervalSince1970,
            flags: cookie.map {
                ($0.isSecure ? Self.secureFlag : 0) | ($0.isHTTPOnly ? Self.httpOnlyFlag : 0)
            } ?? 0,
            replaced: replaced)
    }

    /// Nil if no cookie can have such columns, or they are not what was written: a flipped bit on the disk
    /// must not turn one cookie into another, or into a line of a request's head.
    init?(_ columns: Columns, digest: Int64, now: Date) {
        guard columns.digest == digest, Self.isText(columns.domain), !columns.domain.isEmpty,
            Self.isText(columns.path), columns.path.hasPrefix("/"), Self.isText(columns.name),
            !columns.name.isEmpty,
            columns.isHostOnly == 0 || columns.isHostOnly == 1, columns.updated.isFinite
        else { return nil }
        let key = Cookie.Key(
            domain: columns.domain, isHostOnly: columns.isHostOnly == 1, path: columns.path,
            name: columns.name)
        guard let value = columns.value else {
            self.init(
                key: key, cookie: nil, replaced: columns.replaced,
                updatedAt: Date(timeIntervalSince1970: columns.updated))
            return
        }
        // The clock may have been wrong when the row was written, so any time is possible.
        let latest = now.timeIntervalSince1970 + CookieRules.maximumAge
        guard Self.isText(value), columns.name.utf8.count + value.utf8.count <= SetCookie.maximumSize,
            columns.expires.isFinite, columns.created.isFinite
        else { return nil }
        let cookie = Cookie(
            name: columns.name, value: value, domain: columns.domain, isHostOnly: key.isHostOnly,
            path: columns.path, expires: Date(timeIntervalSince1970: min(columns.expires, latest)),
            isSecure: columns.flags & Self.secureFlag != 0,
            isHTTPOnly: columns.flags & Self.httpOnlyFlag != 0,
            createdAt: Date(timeIntervalSince1970: columns.created),
            updatedAt: Date(timeIntervalSince1970: columns.updated))
        self.init(key: key, cookie: cookie, replaced: columns.replaced)
    }

    private static func isText(_ text: String) -> Bool {
        text.utf8.count <= SetCookie.maximumSize
            && text.utf8.allSatisfy { ($0 >= 0x20 || $0 == 0x09) && $0 != 0x7F && $0 != UInt8(ascii: ";") }
    }
}

extension CookieRow.Columns {
    /// The digest of all columns, each with its length.
    var digest: Int64 {
        var digest = Digest()
        for text in [domain, path, name, value ?? ""] { digest.add(text) }
        digest.add(value == nil ? 0 : 1)
        digest.add(isHostOnly)
        digest.add(flags)
        for number in [expires, created, updated] { digest.add(Int64(bitPattern: number.bitPattern)) }
        digest.add(replaced == nil ? 0 : 1)
        digest.add(replaced ?? 0)
        return digest.value
    }
}

extension Cookie {
    /// The digest of the parts of a cookie, besides its key, that Foundation's file contains: the value, and
    /// the expiry in milliseconds.
    var digest: Int64 {
        var digest = Digest()
        digest.add(value)
        let milliseconds = (expires?.timeIntervalSince1970 ?? 0) * 1000
        digest.add(Int64(exactly: milliseconds.rounded()) ?? 0)
        return digest.value
    }
}

/// FNV-1a with 64 bits: detects accidental changes, not deliberate ones.
private struct Digest {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    var value: Int64 { Int64(bitPattern: hash) }

    mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(Int64(text.utf8.count))
    }

    mutating func add(_ number: Int64) {
        var rest = UInt64(bitPattern: number)
        for _ in 0..<8 {
            add(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    private mutating func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
}
