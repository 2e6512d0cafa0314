package import struct Foundation.Date
package import struct Foundation.URL

/// A request's policy for the use of the cache: one of the six of rule UC-56.
package enum CachePolicy: Sendable, CaseIterable {
    /// HTTP's rules.
    case protocolRules
    /// Load in any case.
    case reload
    /// Use the entry, whatever its age; load if there is none.
    case cacheElseLoad
    /// Use the entry, whatever its age; fail if there is none.
    case cacheOnly
    /// Load in any case, and tell the caches on the way to do so too.
    case reloadEndToEnd
    /// Use the entry only after the server has validated it; otherwise load.
    case revalidate
}

/// Which responses a private cache may store and reuse (RFC 9111). Values in, decisions out; the caller
/// passes the time.
package enum CacheRules {
    package enum Decision: Sendable, Equatable {
        /// Send the request unchanged; an entry, if there is one, cannot be used.
        case load
        /// Send the request with the entry's conditions. A 304 means that the entry is the answer.
        case revalidate
        /// The entry is the answer.
        case use
        /// The entry is the answer, and has to be validated in the background (RFC 5861 §3).
        case useAndRevalidate
        /// No entry may be used, and nothing may be sent.
        case fail
    }

    // MARK: Reuse

    /// Whether requests of this kind are answered from a cache and their responses stored: GET without a
    /// range and without conditions of the program's own, which ask for the server's answer.
    ///
    /// - Parameter fields: The program's, of the request and of the settings; nil if there are none.
    package static func concerns(method: String, fields: HeaderFields?) -> Bool {
        guard let fields, !fields.isEmpty else { return method == "GET" }
        return method == "GET" && !ownConditions.contains(where: fields.contains)
    }

    private static let ownConditions = [
        "Range", "If-Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since",
    ]

    /// The decision about a request for which `concerns` is true.
    ///
    /// - Parameters:
    ///   - request: The fields as they would be sent, cookies included: Vary may name any of them.
    ///   - entry: The response stored for the URL, if there is one.
    package static func decide(
        _ policy: CachePolicy, request: HeaderFields, entry: CacheEntry?, now: Date
    ) -> Decision {
        let entry = entry.flatMap { $0.matches(request) ? $0 : nil }
        switch policy {
        case .reload, .reloadEndToEnd: return .load
        case .cacheElseLoad: return entry == nil ? .load : .use
        case .cacheOnly: return entry == nil ? .fail : .use
        case .revalidate: return entry.map(asking) ?? .load
        case .protocolRules: return byRules(CacheControl(request, isRequest: true), entry, now)
        }
    }

    /// The decision by HTTP's rules (§4 and §5.2.1).
    private static func byRules(_ request: CacheControl, _ entry: CacheEntry?, _ now: Date) -> Decision {
        guard let entry else { return request.onlyIfCached ? .fail : .load }
        let response = CacheControl(entry.fields, isRequest: false)
        let (age, lifetime) = (entry.age(at: now), entry.lifetime)
        let needsValidation =
            request.noCache || response.noCache || request.maxAge.map { age > Double($0) } ?? false
        let freshFor = lifetime - age
        if !needsValidation {
            if freshFor > 0, freshFor >= Double(request.minFresh ?? 0) { return .use }
            if freshFor <= 0, !response.mustRevalidate, request.minFresh == nil {
                if let maxStale = request.maxStale, -freshFor <= Double(maxStale) { return .use }
                if let grace = response.staleWhileRevalidate, -freshFor <= Double(grace) {
                    return request.onlyIfCached ? .use : .useAndRevalidate
                }
            }
        }
        return request.onlyIfCached ? .fail : asking(entry)
    }

    private static func asking(_ entry: CacheEntry) -> Decision {
        entry.conditions.isEmpty ? .load : .revalidate
    }

    /// Whether the entry may replace the answer of a server that failed or could not be reached (RFC 5861
    /// §4).
    ///
    /// - Parameter status: The server's status; only 500, 502, 503 and 504 are failures. Nil if there was no
    ///   response.
    package static func mayServeStale(
        _ entry: CacheEntry, for status: Int?, request: HeaderFields, policy: CachePolicy, now: Date
    ) -> Bool {
        guard policy == .protocolRules, entry.matches(request) else { return false }
        if let status, ![500, 502, 503, 504].contains(status) { return false }
        let asked = CacheControl(request, isRequest: true)
        let said = CacheControl(entry.fields, isRequest: false)
        if asked.noCache || said.noCache || said.mustRevalidate { return false }
        guard let grace = [asked.staleIfError, said.staleIfError].compactMap({ $0 }).max() else {
            return false
        }
        return entry.age(at: now) - entry.lifetime <= Double(grace)
    }

    // MARK: Storing

    /// Whether the response may be stored (§3, rule UC-53). The request must be one for which `concerns` is
    /// true.
    ///
    /// A 206 may not, since it is a part. `Vary: *` may not, since no request would ever match it.
    ///
    /// - Parameter request: The fields that were sent; nil if there were none.
    package static func mayStore(_ response: ResponseHead, to request: HeaderFields?) -> Bool {
        guard 200..<300 ~= response.status, response.status != 206, response.status != 205 else {
            return false
        }
        let said = CacheControl(response.fields, isRequest: false)
        if said.mustUnderstand {
            guard understood.contains(response.status) else { return false }
        } else if said.noStore {
            return false
        }
        guard CacheEntry.varying(response.fields) != nil,
            !(request.map { CacheControl($0, isRequest: true).noStore } ?? false)
        else { return false }
        return CacheEntry.heuristicallyCacheable.contains(response.status) || said.maxAge != nil
            || said.isPublic || said.isPrivate || response.fields.has("Expires")
    }

    /// Whether a response that may be stored could ever answer a request without being loaded again: it is
    /// fresh for a while, or the server can validate it, or by its request's policy the program accepts
    /// stored responses of any age.
    package static func isOfUse(_ response: ResponseHead, _ policy: CachePolicy, now: Date) -> Bool {
        let fields = response.fields
        if fields.hasReturnableTag || fields.has("Last-Modified") { return true }
        if policy == .cacheElseLoad { return true }
        let said = CacheControl(fields, isRequest: false)
        if said.staleIfError != nil || said.staleWhileRevalidate != nil { return true }
        if said.noCache { return false }
        if let maxAge = said.maxAge { return maxAge > 0 }
        guard fields.has("Expires") else { return false }
        return CacheEntry(
            status: response.status, fields: fields, requestedAt: now, receivedAt: now
        ).lifetime > 0
    }

    /// Whether a response to GET says what the URL has now, or that it has nothing any more: then an older
    /// response must not answer later requests, even if this one is not stored. A 206 is a part, and an error
    /// may pass.
    package static func outdates(_ response: ResponseHead) -> Bool {
        200..<300 ~= response.status && response.status != 206 || [404, 410].contains(response.status)
    }

    /// Whether a response to HEAD, with status 200, shows that a response to GET is not what the server has
    /// now (§4.3.5).
    ///
    /// Servers that compress responses to GET only send a weak tag with those, and a strong one and the
    /// length of the whole content with HEAD. So tags are compared weakly (RFC 9110 §8.8.3.2), and lengths
    /// only of the same coding.
    package static func outdates(_ entry: CacheEntry, byHead response: ResponseHead) -> Bool {
        func differs(_ name: String) -> Bool {
            guard let old = entry.fields[name], let new = response.fields[name] else { return false }
            return name == "ETag" ? CacheEntry.opaque(old) != CacheEntry.opaque(new) : old != new
        }
        let hasSameCoding = entry.fields["Content-Encoding"] == response.fields["Content-Encoding"]
        return differs("ETag") || differs("Last-Modified") || hasSameCoding && differs("Content-Length")
    }

    /// The storable status codes whose meaning the cache knows (§5.2.2.3).
    private static let understood: Set<Int> = [200, 203, 204]

    /// The URLs whose entries a response to an unsafe request makes doubtful (§4.4): its own, and those in
    /// Location and Content-Location on the same origin. Empty for a safe method, and for an error.
    package static func invalidated(by response: ResponseHead, method: String, url: URL) -> [URL] {
        guard !["GET", "HEAD", "OPTIONS", "TRACE"].contains(method), 200..<400 ~= response.status else {
            return []
        }
        let named = (["Location", "Content-Location"] as [StaticString]).compactMap { name -> URL? in
            var first: String?
            response.fields.forEachValue(of: name) { first = first ?? HeaderFields.reference($0) }
            guard let text = first else { return nil }
            var target = URIReference(mending: text).resolved(against: URIReference(url.absoluteString))
            target.fragment = nil
            guard let target = URL(string: target.text), Redirect.areSameOrigin(target, url) else {
                return nil
            }
            return target
        }
        return [url] + named
    }

    // MARK: Requests

    /// The fields that tell the caches on the way what the policy wants, unless the request has such fields:
    /// to reload from end to end (§5.2.1.4), with Pragma for caches of HTTP/1.0, or to validate (§5.2.1.1).
    package static func endToEndFields(_ policy: CachePolicy) -> [(name: String, value: String)] {
        switch policy {
        case .reloadEndToEnd: [("Cache-Control", "no-cache"), ("Pragma", "no-cache")]
        case .revalidate: [("Cache-Control", "max-age=0")]
        case .protocolRules, .reload, .cacheElseLoad, .cacheOnly: []
        }
    }
}
