import Rondo
import RondoHTTP
import RondoMutex

/// The cookies of a command: from files in Netscape's format, and from servers.
final class FetchCookies: Sendable {
    private struct State {
        var table = CookieTable()
        /// The number of cookies so far; it makes their times of creation unique.
        var count = 0

        mutating func nextDate() -> Date {
            count += 1
            return Date().addingTimeInterval(Double(count) * 1e-3)
        }
    }

    /// The domain of cookies whose field in a file names none. They are sent to hosts that are addresses, and
    /// not saved, as in curl.
    private static let noDomain = ""

    private let state = Mutex(State())

    // MARK: Loads

    /// The value of the Cookie field for a request to `url`, with the cookies of the command line last; nil
    /// if there are none.
    func field(for url: FetchURL, and given: [String]) -> String? {
        let (origin, now) = (url.cookieOrigin, Date())
        let pairs = state.withLock { state in
            var cookies = state.table.cookies(for: origin, now: now)
            if CookieRules.isAddress(origin.host) {
                let nowhere = CookieOrigin(host: Self.noDomain, path: origin.path, isSecure: origin.isSecure)
                cookies += state.table.cookies(for: nowhere, now: now)
            }
            return cookies.sorted(by: Self.isSentBefore).map { "\($0.name)=\($0.value)" }
        }
        let text = (pairs + (given.isEmpty ? [] : [given.joined(separator: ";")])).joined(separator: "; ")
        return text.isEmpty ? nil : text
    }

    /// In curl's order: longer paths, longer domains, longer names and later cookies come first.
    private static func isSentBefore(_ left: Cookie, _ right: Cookie) -> Bool {
        (right.path.utf8.count, right.domain.utf8.count, right.name.utf8.count, right.createdAt)
            < (left.path.utf8.count, left.domain.utf8.count, left.name.utf8.count, left.createdAt)
    }

    func receive(_ values: [String], from url: FetchURL) {
        let origin = url.cookieOrigin
        state.withLock { state in
            let now = Date()
            let cookies = values.compactMap { Self.cookie(ofField: $0, from: origin, now: state.nextDate()) }
            // At once: each call makes room, for which it sorts all cookies of a full domain.
            _ = state.table.receive(cookies, from: origin, now: now)
        }
    }

    /// The cookie that a Set-Cookie field sets; nil if it is refused.
    ///
    /// - Parameter origin: Nil for a field in a file: it counts as one of a response from its own domain.
    private static func cookie(ofField value: String, from origin: CookieOrigin?, now: Date) -> Cookie? {
        guard let field = SetCookie(value) else { return nil }
        let origin = origin ?? CookieOrigin(host: field.domain ?? noDomain, path: "/", isSecure: true)
        guard var cookie = CookieRules.cookie(field, from: origin, now: now) else { return nil }
        // A tab would begin another field of the file's line, also one of another host's cookie.
        let texts = [cookie.domain, cookie.name, cookie.value, cookie.path]
        if texts.contains(where: { $0.contains("\t") }) { return nil }
        // The server's expiry date is not limited: cookies end with the command, or are in the user's file.
        if field.maxAge == nil { cookie.expires = field.expires }
        return cookie
    }

    // MARK: Files

    /// The latest expiry date, in seconds since 1970: the end of the year 9999. Later dates are replaced by
    /// it.
    private static let latestExpiry: Int64 = 253_402_300_799

    /// Reads a file in Netscape's format, or of Set-Cookie fields. A file that cannot be read counts as
    /// empty, as in curl.
    ///
    /// A Set-Cookie field counts for its Domain and the hosts below it. The file does not say which host sent
    /// a field without one.
    func read(_ path: String, droppingSessions: Bool) {
        guard !path.isEmpty, let data = try? InputFile.data(path, for: "-b") else { return }
        let now = Date()
        for bytes in data.split(separator: UInt8(ascii: "\n")) {
            let line = bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes
            guard var cookie = Self.cookie(ofLine: line, now: now),
                !(droppingSessions && cookie.expires == nil)
            else { continue }
            state.withLock { state in
                cookie.createdAt = state.nextDate()
                // One that has expired takes the place of an earlier one, too, as in curl.
                if cookie.isExpired(at: now) {
                    state.table.remove(cookie.key)
                } else {
                    state.table.insert(cookie)
                }
            }
        }
    }

    /// The cookie of a file's line; nil if a Netscape line, or the name or value of a Set-Cookie line, is not
    /// UTF-8: the server would get other bytes back.
    private static func cookie(ofLine bytes: Data, now: Date) -> Cookie? {
        let start = "set-cookie:"
        guard String(decoding: bytes.prefix(start.utf8.count), as: UTF8.self).lowercased() == start else {
            return String(validating: bytes, as: UTF8.self).flatMap { cookie(of: $0[...], now: now) }
        }
        var fields = HeaderFields()
        bytes.dropFirst(start.utf8.count).withUnsafeBytes {
            fields.set(name: "Set-Cookie", value: $0.bindMemory(to: UInt8.self))
        }
        return SetCookie.values(in: fields).first.flatMap { cookie(ofField: $0, from: nil, now: now) }
    }

    private static func cookie(of given: Substring, now: Date) -> Cookie? {
        var line = given
        let prefix = "#HttpOnly_"
        let isHTTPOnly = line.hasPrefix(prefix)
        if isHTTPOnly { line = line.dropFirst(prefix.count) }
        if line.hasPrefix("#") { return nil }
        let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
        guard parts.count >= 6, let expires = Int64(parts[4]) else { return nil }
        let domain = parts[0].hasPrefix(".") ? parts[0].dropFirst() : parts[0]
        if domain.isEmpty { return nil }
        return Cookie(
            name: String(parts[5]), value: parts.count > 6 ? String(parts[6]) : "",
            domain: domain.lowercased(), isHostOnly: parts[1] != "TRUE", path: String(parts[2]),
            expires: expires == 0 ? nil : Date(timeIntervalSince1970: Double(min(expires, latestExpiry))),
            isSecure: parts[3] == "TRUE", isHTTPOnly: isHTTPOnly, createdAt: now)
    }

    /// The cookies in Netscape's format, the newest first.
    var fileText: String {
        let cookies = state.withLock { $0.table.all }.filter { $0.domain != Self.noDomain }
            .sorted { $0.createdAt > $1.createdAt }
        return "# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n"
            + "# This file was generated by rondo! Edit at your own risk.\n\n"
            + cookies.map(Self.line).joined()
    }

    private static func line(_ cookie: Cookie) -> String {
        let parts = [
            (cookie.isHTTPOnly ? "#HttpOnly_" : "") + (cookie.isHostOnly ? "" : ".") + cookie.domain,
            cookie.isHostOnly ? "FALSE" : "TRUE", cookie.path, cookie.isSecure ? "TRUE" : "FALSE",
            String(Int64(min(cookie.expires?.timeIntervalSince1970 ?? 0, Double(latestExpiry)))), cookie.name,
            cookie.value,
        ]
        return parts.joined(separator: "\t") + "\n"
    }
}

extension FetchURL {
    fileprivate var cookieOrigin: CookieOrigin {
        // A request to this machine does not use a network, so secure cookies are sent by http too, as in
        // curl.
        let isOwnMachine = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host.lowercased())
        return CookieOrigin(host: host, path: path, isSecure: isSecure || isOwnMachine)
    }
}
