package import struct Foundation.Date

/// Which cookies are stored and which are sent (RFC 6265bis §5). Values in, decisions out; the caller has the
/// store and the clock.
package enum CookieRules {
    /// The longest lifetime of a cookie in seconds (§5.5): 400 days.
    package static let maximumAge: Double = 400 * 86_400

    /// The most cookies of one domain; beyond that `CookieTable` removes some. RFC 6265 §6.1 asks for 50 at
    /// least, Chromium keeps 180.
    package static let maximumPerDomain = 180

    /// The most cookies in all; beyond that `CookieTable` removes some. RFC 6265 §6.1 asks for 3,000 at
    /// least.
    package static let maximumCount = 3_300

    // MARK: Receiving

    /// The cookie that a Set-Cookie field of a response from `origin` sets; nil if the field must be
    /// rejected.
    ///
    /// A cookie that has already expired deletes the cookie that it replaces.
    package static func cookie(
        _ field: SetCookie, from origin: CookieOrigin, suffixes: PublicSuffixes = .shared, now: Date
    ) -> Cookie? {
        guard let (domain, isHostOnly) = domain(of: field, from: origin, suffixes) else { return nil }
        // A connection without TLS may not set a cookie that is sent only over TLS (§5.7, step 8).
        if field.isSecure, !origin.isSecure { return nil }
        guard prefixAllows(field, isHostOnly: isHostOnly) else { return nil }
        return Cookie(
            name: field.name, value: field.value, domain: domain, isHostOnly: isHostOnly,
            path: field.path ?? defaultPath(origin.path), expires: expiry(of: field, now: now),
            isSecure: field.isSecure, isHTTPOnly: field.isHTTPOnly, createdAt: now)
    }

    private static func domain(of field: SetCookie, from origin: CookieOrigin, _ suffixes: PublicSuffixes)
        -> (String, isHostOnly: Bool)?
    {
        guard let domain = field.domain, domain != origin.host || !isAddress(origin.host) else {
            return (origin.host, true)
        }
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if suffixes.contains(domain) {
            // A host that is itself a public suffix may set a cookie for itself only (§5.7, step 5).
            return domain == origin.host ? (domain, true) : nil
        }
        return domainMatches(origin.host, domain) ? (domain, false) : nil
    }

    /// Max-Age takes precedence over Expires (§5.7, step 3).
    private static func expiry(of field: SetCookie, now: Date) -> Date? {
        let latest = now.addingTimeInterval(maximumAge)
        if let maxAge = field.maxAge {
            return maxAge <= 0
                ? Date(timeIntervalSince1970: 0) : min(latest, now.addingTimeInterval(Double(maxAge)))
        }
        return field.expires.map { min(latest, $0) }
    }

    /// Whether the rules for the prefixes `__Secure-` and `__Host-`, in any case, hold (§4.1.3 and §5.7).
    private static func prefixAllows(_ field: SetCookie, isHostOnly: Bool) -> Bool {
        let name = field.name.lowercased()
        let isHost = name.hasPrefix("__host-")
        guard isHost || name.hasPrefix("__secure-") else { return true }
        return field.isSecure && (!isHost || (isHostOnly && field.domain == nil && field.path == "/"))
    }

    /// Whether `cookie` may be stored beside the given ones: a cookie from plain HTTP must not replace, or
    /// hide, a secure one (§5.7, step 16, "leave secure cookies alone").
    package static func mayStore(
        _ cookie: Cookie, from origin: CookieOrigin, beside stored: some Sequence<Cookie>
    ) -> Bool {
        if cookie.isSecure || origin.isSecure { return true }
        return !stored.contains { other in
            other.isSecure && other.name == cookie.name
                && (domainMatches(other.domain, cookie.domain) || domainMatches(cookie.domain, other.domain))
                && pathMatches(cookie.path, other.path)
        }
    }

    // MARK: Sending

    /// Those of `cookies` that are sent to `origin`: longer paths first, then earlier creation (§5.8.3).
    package static func chosen(of cookies: [Cookie], to origin: CookieOrigin, now: Date) -> [Cookie] {
        let meant = cookies.filter { matches($0, for: origin) && !$0.isExpired(at: now) }
        if meant.count < 2 { return meant }
        return meant.enumerated()
            .sorted { left, right in
                let (mine, other) = (left.element, right.element)
                if mine.path.utf8.count != other.path.utf8.count {
                    return mine.path.utf8.count > other.path.utf8.count
                }
                if mine.createdAt != other.createdAt { return mine.createdAt < other.createdAt }
                return left.offset < right.offset
            }
            .map(\.element)
    }

    private static func matches(_ cookie: Cookie, for origin: CookieOrigin) -> Bool {
        (cookie.isHostOnly ? origin.host == cookie.domain : domainMatches(origin.host, cookie.domain))
            && (origin.isSecure || !cookie.isSecure) && pathMatches(origin.path, cookie.path)
    }

    // MARK: Matching

    /// Whether `host` domain-matches `domain` (§5.1.3).
    package static func domainMatches(_ host: String, _ domain: String) -> Bool {
        if host == domain { return true }
        return host.utf8.count > domain.utf8.count && host.hasSuffix(domain)
            && host.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".") && !isAddress(host)
    }

    /// Whether `path` path-matches `cookiePath` (§5.1.4).
    package static func pathMatches(_ path: String, _ cookiePath: String) -> Bool {
        guard path.utf8.starts(with: cookiePath.utf8) else { return false }
        if path.utf8.count == cookiePath.utf8.count || cookiePath.utf8.last == slash { return true }
        return path.utf8.dropFirst(cookiePath.utf8.count).first == slash
    }

    /// The default path (§5.1.4): up to the last slash, without it.
    package static func defaultPath(_ path: String) -> String {
        guard path.utf8.first == slash, let last = path.utf8.lastIndex(of: slash), last > path.startIndex
        else { return "/" }
        return String(path[..<last])
    }

    private static let slash = UInt8(ascii: "/")

    /// Whether a host is not a name: an IPv6 address, or one that ends in a number (WHATWG URL, "ends in a
    /// number").
    package static func isAddress(_ host: String) -> Bool {
        if host.utf8.contains(Grammar.colon) { return true }
        let last = host.utf8.split(separator: UInt8(ascii: ".")).last
        return last.map { $0.allSatisfy(Grammar.isDigit) } ?? false
    }
}
