package import struct Foundation.Date

/// The stored cookies, by domain. The time that a response's or a request's cookies take depends on the
/// number of cookies of its own domain, not on the total.
///
/// A value without access to files, clocks or locks.
package struct CookieTable: Sendable {
    private var domains: [String: [Cookie.Key: Cookie]] = [:]
    /// The keys of secure cookies, which a cookie of plain HTTP must not hide, by name.
    private var secure: [String: Set<Cookie.Key>] = [:]
    /// The cookies in the order in which their values were set: `coming[head...]`. Those removed or set again
    /// since are skipped.
    private var coming: [(key: Cookie.Key, updatedAt: Date)] = []
    private var head = 0
    /// No cookie expires before this date.
    private var earliestExpiry = Date.distantFuture
    package private(set) var count = 0

    package init() {}

    package subscript(key: Cookie.Key) -> Cookie? { domains[key.domain]?[key] }

    package var all: [Cookie] { domains.values.flatMap(\.values) }

    /// The cookies of a domain, host-only or not.
    package func cookies(ofDomain domain: String) -> [Cookie] {
        domains[domain].map { Array($0.values) } ?? []
    }

    // MARK: Changing

    /// Stores a cookie, and returns the cookie with the same key that it replaces, if any. It then keeps that
    /// cookie's creation date.
    @discardableResult
    package mutating func insert(_ given: Cookie) -> Cookie? {
        var cookie = given
        let key = cookie.key
        let old = domains[key.domain]?[key]
        if let old {
            cookie.createdAt = old.createdAt
        } else {
            count += 1
        }
        domains[key.domain, default: [:]][key] = cookie
        noteComing(key, cookie.updatedAt)
        if let expires = cookie.expires { earliestExpiry = min(earliestExpiry, expires) }
        if cookie.isSecure != old?.isSecure ?? false { noteSecure(key, cookie.isSecure) }
        return old
    }

    @discardableResult
    package mutating func remove(_ key: Cookie.Key) -> Cookie? {
        guard let old = domains[key.domain]?.removeValue(forKey: key) else { return nil }
        if domains[key.domain]?.isEmpty ?? false { domains[key.domain] = nil }
        if old.isSecure { noteSecure(key, false) }
        count -= 1
        return old
    }

    private mutating func noteSecure(_ key: Cookie.Key, _ isSecure: Bool) {
        if isSecure {
            secure[key.name, default: []].insert(key)
        } else {
            secure[key.name]?.remove(key)
            if secure[key.name]?.isEmpty ?? false { secure[key.name] = nil }
        }
    }

    /// Call it when the cookie is in `domains`.
    private mutating func noteComing(_ key: Cookie.Key, _ updatedAt: Date) {
        coming.append((key, updatedAt))
        guard coming.count > 2 * count + 64 else { return }
        coming = coming[head...].filter { self[$0.key]?.updatedAt == $0.updatedAt }
        head = 0
    }

    // MARK: Receiving

    /// The most comparisons with secure cookies for one response from an insecure origin. A cookie that is
    /// not compared is not stored.
    package static let maximumComparisons = 20_000

    /// Stores the cookies that one response sets, and makes room (§5.7): a domain with too many cookies loses
    /// its expired ones, then those that are not secure, then others, of each those first whose values were
    /// set longest ago; the whole table its expired ones and then those that were set longest ago. A cookie
    /// that is in use is set again now and then: to note each request that sends it, as the RFC does, would
    /// make requests dearer.
    ///
    /// - Returns: The keys whose cookies have changed or been removed.
    package mutating func receive(_ cookies: [Cookie], from origin: CookieOrigin, now: Date) -> [Cookie.Key] {
        var changed: [Cookie.Key] = []
        var comparisons = 0
        for cookie in cookies {
            let key = cookie.key
            if !cookie.isSecure, !origin.isSecure, secure[cookie.name] != nil {
                // Expired ones neither hide a cookie nor count as comparisons.
                changed += removeExpired(now: now)
                let rivals = secure[cookie.name] ?? []
                comparisons += rivals.count
                guard comparisons <= Self.maximumComparisons,
                    CookieRules.mayStore(cookie, from: origin, beside: rivals.compactMap { self[$0] })
                else { continue }
            }
            if cookie.isExpired(at: now) {
                if remove(key) == nil { continue }
            } else {
                if self[key]?.isExpired(at: now) ?? false { remove(key) }
                insert(cookie)
            }
            changed.append(key)
        }
        if changed.count == 1 {
            changed += makeRoom(in: changed[0].domain, now: now)
        } else {
            for domain in Set(changed.map(\.domain)) { changed += makeRoom(in: domain, now: now) }
        }
        return changed + makeRoom(now: now)
    }

    private mutating func makeRoom(in domain: String, now: Date) -> [Cookie.Key] {
        guard let own = domains[domain], own.count > CookieRules.maximumPerDomain else { return [] }
        var gone = own.filter { $0.value.isExpired(at: now) }.map(\.key)
        let excess = own.count - gone.count - CookieRules.maximumPerDomain
        if excess > 0 {
            gone += own.filter { !$0.value.isExpired(at: now) }
                .sorted { Self.rank($0.value) < Self.rank($1.value) }
                .prefix(excess).map(\.key)
        }
        for key in gone { remove(key) }
        return gone
    }

    /// The place of a cookie in the order in which those of a full domain are removed.
    private static func rank(_ cookie: Cookie) -> (Int, Date, Date) {
        (cookie.isSecure ? 1 : 0, cookie.updatedAt, cookie.createdAt)
    }

    /// Removes cookies if there are too many in all.
    ///
    /// - Returns: The keys of the removed cookies.
    package mutating func makeRoom(now: Date) -> [Cookie.Key] {
        guard count > CookieRules.maximumCount else { return [] }
        var gone = removeExpired(now: now)
        while count > CookieRules.maximumCount, head < coming.count {
            let (key, updatedAt) = coming[head]
            head += 1
            guard self[key]?.updatedAt == updatedAt else { continue }
            remove(key)
            gone.append(key)
        }
        return gone
    }

    /// Removes expired cookies.
    ///
    /// - Returns: The keys of the removed cookies.
    package mutating func removeExpired(now: Date) -> [Cookie.Key] {
        guard earliestExpiry <= now else { return [] }
        let gone = all.filter { $0.isExpired(at: now) }.map(\.key)
        for key in gone { remove(key) }
        earliestExpiry = all.lazy.compactMap(\.expires).min() ?? .distantFuture
        return gone
    }

    // MARK: Sending

    /// The cookies for a request to `origin`, in the order in which they are sent (§5.8.3).
    package func cookies(for origin: CookieOrigin, now: Date) -> [Cookie] {
        guard count > 0 else { return [] }
        var candidates: [Cookie] = []
        if let own = domains[origin.host] { candidates += own.values }
        if !CookieRules.isAddress(origin.host) {
            var rest = origin.host[...]
            while let dot = rest.firstIndex(of: ".") {
                rest = rest[rest.index(after: dot)...]
                if let own = domains[String(rest)] { candidates += own.values }
            }
        }
        if candidates.isEmpty { return [] }
        return CookieRules.chosen(of: candidates, to: origin, now: now)
    }
}
