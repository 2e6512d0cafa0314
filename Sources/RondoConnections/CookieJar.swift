internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// Foundation's cookie storage, asked and filled by RFC 6265's rules and not by its own, which know neither
/// paths nor Secure nor public suffixes (rule UC-57).
struct CookieJar {
    let storage: HTTPCookieStorage

    /// When cookies came that have been replaced since: the storage forgets it, and the order of cookies
    /// depends on it (RFC 6265 §5.3, step 11.3). As many as a storage may hold.
    private static let firstSeen = Mutex<[Key: Date]>([:])

    /// When the last cookie came. The next one came later, be it in the same field section: the order in
    /// which they are sent is that of their coming (RFC 6265 §5.4, step 2).
    private static let lastMoment = Mutex(Date.distantPast)

    private static func nextMoment(_ now: Date) -> Date {
        lastMoment.withLock { last in
            // Less is lost in a Date's number.
            last = max(now, last.addingTimeInterval(1e-6))
            return last
        }
    }

    private struct Key: Hashable {
        let storage: ObjectIdentifier
        let name: String
        let domain: String
        let path: String
    }

    // MARK: Sending

    /// The Cookie field of `request`; nil if there is nothing to add to what it has.
    ///
    /// A program's own Cookie field stays, in front; of its names none is sent twice.
    func fieldValue(for request: URLRequest) -> String? {
        guard request.httpShouldHandleCookies, let stored = storage.cookies, !stored.isEmpty,
            let origin = Self.origin(of: request.url)
        else { return nil }
        let own = request.value(forHTTPHeaderField: "Cookie")
        let ownNames = Set(
            (own ?? "").split(separator: ";").compactMap {
                $0.split(separator: "=", omittingEmptySubsequences: false).first?
                    .trimmingCharacters(in: .whitespaces)
            })
        let candidates = stored.filter { Self.mayConcern($0, origin) && !ownNames.contains($0.name) }
        guard !candidates.isEmpty,
            let value = CookieRules.fieldValue(of: candidates.map(cookie), to: origin, now: Date())
        else { return nil }
        return own.map { $0 + "; " + value } ?? value
    }

    /// A first look, before anything is made of it.
    private static func mayConcern(_ cookie: HTTPCookie, _ origin: CookieOrigin) -> Bool {
        let domain = cookie.domain.hasPrefix(".") ? cookie.domain.dropFirst() : cookie.domain[...]
        return origin.host.hasSuffix(domain)
    }

    // MARK: Receiving

    /// Keeps what a response to `request` sets, as far as the storage's policy allows.
    func receive(_ fields: HeaderFields, for request: URLRequest) {
        guard fields.has("Set-Cookie"), request.httpShouldHandleCookies,
            let origin = Self.origin(of: request.url), isAccepted(from: origin, request)
        else { return }
        let now = Date()
        // Of more cookies than a domain may have the first ones would not stay; and each costs the storage a
        // file.
        for text in fields.values(for: "Set-Cookie").suffix(CookieRules.maximumPerDomain) {
            guard let field = SetCookie(text),
                var cookie = CookieRules.cookie(field, from: origin, now: now)
            else { continue }
            cookie.createdAt = Self.nextMoment(now)
            store(cookie, from: origin, now: now)
        }
        makeRoom(now)
    }

    private func isAccepted(from origin: CookieOrigin, _ request: URLRequest) -> Bool {
        switch storage.cookieAcceptPolicy {
        case .always: return true
        case .never: return false
        case .onlyFromMainDocumentDomain:
            // Without a main document the request is its own.
            guard let main = request.mainDocumentURL?.host?.lowercased() else { return true }
            return CookieRules.domainMatches(main, origin.host)
                || CookieRules.domainMatches(origin.host, main)
        @unknown default: return false
        }
    }

    private func store(_ cookie: Cookie, from origin: CookieOrigin, now: Date) {
        let stored = storage.cookies ?? []
        let rivals = stored.filter { $0.name == cookie.name }.map(self.cookie)
        guard CookieRules.mayStore(cookie, from: origin, beside: rivals) else { return }
        let old = zip(stored.filter { $0.name == cookie.name }, rivals).first { cookie.replaces($0.1) }
        let key = key(of: cookie)
        if cookie.isExpired(at: now) {
            Self.firstSeen.withLock { $0[key] = nil }
            if let old { storage.deleteCookie(old.0) }
            return
        }
        guard let kept = Self.foundation(cookie) else { return }
        Self.firstSeen.withLock { seen in
            if seen.count >= CookieRules.maximumCount { seen = [:] }
            seen[key] = old?.1.createdAt ?? cookie.createdAt
        }
        storage.setCookie(kept)
    }

    private func makeRoom(_ now: Date) {
        guard let stored = storage.cookies, stored.count > CookieRules.maximumPerDomain else { return }
        let cookies = stored.map(cookie)
        for gone in CookieRules.excess(of: cookies, now: now) {
            if let index = cookies.firstIndex(of: gone) { storage.deleteCookie(stored[index]) }
        }
    }

    // MARK: Foundation's cookies

    private static func origin(of url: URL?) -> CookieOrigin? {
        guard let url, let host = url.host, !host.isEmpty else { return nil }
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? "/"
        return CookieOrigin(host: host, path: path, isSecure: url.scheme?.lowercased() == "https")
    }

    /// A dot in front of the domain is how Foundation tells a domain's cookie from a host's.
    private func cookie(_ cookie: HTTPCookie) -> Cookie {
        let isHostOnly = !cookie.domain.hasPrefix(".")
        let created = cookie.properties?[HTTPCookiePropertyKey(rawValue: "Created")] as? Double
        var value = Cookie(
            name: cookie.name, value: cookie.value,
            domain: (isHostOnly ? cookie.domain : String(cookie.domain.dropFirst())).lowercased(),
            isHostOnly: isHostOnly, path: cookie.path, expires: cookie.expiresDate,
            isSecure: cookie.isSecure, isHTTPOnly: cookie.isHTTPOnly,
            createdAt: Date(timeIntervalSinceReferenceDate: created ?? 0))
        if let first = Self.firstSeen.withLock({ $0[key(of: value)] }) { value.createdAt = first }
        return value
    }

    private func key(of cookie: Cookie) -> Key {
        Key(
            storage: ObjectIdentifier(storage), name: cookie.name,
            domain: (cookie.isHostOnly ? "" : ".") + cookie.domain, path: cookie.path)
    }

    private static func foundation(_ cookie: Cookie) -> HTTPCookie? {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: cookie.name, .value: cookie.value, .path: cookie.path, .version: "0",
            .domain: (cookie.isHostOnly ? "" : ".") + cookie.domain,
        ]
        if let expires = cookie.expires {
            properties[.expires] = expires
        } else {
            properties[.discard] = "TRUE"
        }
        if cookie.isSecure { properties[.secure] = "TRUE" }
        if cookie.isHTTPOnly { properties[HTTPCookiePropertyKey(rawValue: "HttpOnly")] = "TRUE" }
        return HTTPCookie(properties: properties)
    }
}
