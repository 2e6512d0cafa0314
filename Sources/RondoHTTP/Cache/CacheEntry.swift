package import Foundation

/// The part of a stored response that the cache rules use: everything but the content.
package struct CacheEntry: Sendable, Equatable {
    package var status: Int
    /// The fields as received, and as updated by later 304 responses.
    package var fields: HeaderFields
    /// The instants at which the request was sent and the response received, by the wall clock: an entry may
    /// outlive the machine's uptime.
    package var requestedAt: Date
    package var receivedAt: Date
    /// The request's values of the fields that Vary names: by lower-case name; nil for a field that the
    /// request did not have. Of a password or a cookie it has a hash, because entries are written to the
    /// disk.
    package var selecting: [String: String?]

    package init(
        status: Int, fields: HeaderFields, requestedAt: Date, receivedAt: Date,
        selecting: [String: String?] = [:]
    ) {
        self.status = status
        self.fields = fields
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        self.selecting = selecting
    }

    /// The entry for a response to `request`.
    package init(_ response: ResponseHead, to request: HeaderFields, requestedAt: Date, receivedAt: Date) {
        let fields = Self.storedFields(of: response)
        self.init(
            status: response.status, fields: fields, requestedAt: requestedAt,
            receivedAt: receivedAt, selecting: Self.selecting(fields, request))
    }

    /// The fields of a response without those that apply to one connection only, and without a tag that
    /// cannot be sent back.
    package static func storedFields(of response: ResponseHead) -> HeaderFields {
        var fields = response.fields
        for name in hopByHop(fields) { fields.remove(name) }
        if fields.has("ETag"), !fields.hasReturnableTag { fields.remove("ETag") }
        return fields
    }

    /// The names, in lower case, of those of `fields` that apply to one connection only and are not stored
    /// (§3.1).
    package static func hopByHop(_ fields: HeaderFields) -> Set<String> {
        var names = Set(connectionFields.filter(fields.contains))
        fields.forEachElement(of: "Connection") { element in
            names.insert(String(decoding: element, as: UTF8.self).lowercased())
        }
        return names
    }

    private static let connectionFields = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// The status codes that may be reused without an explicit lifetime (RFC 9110 §15.1).
    static let heuristicallyCacheable: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// The longest lifetime that is assumed without an explicit one, in seconds. As Firefox.
    package static let maximumHeuristicLifetime: Double = 7 * 86_400

    // MARK: Freshness

    /// Seconds for which the response stays fresh after it was made (RFC 9111 §4.2.1).
    package var lifetime: Double {
        let control = CacheControl(fields, isRequest: false)
        if let maxAge = control.maxAge { return Double(maxAge) }
        if let expires = fields.values(for: "Expires").first {
            // A value that is not a date counts as past (§5.3).
            guard let date = HTTPDate.parse(exactly: expires, now: receivedAt) else { return 0 }
            return max(0, date.timeIntervalSince(madeAt))
        }
        guard Self.heuristicallyCacheable.contains(status) || control.isPublic,
            let modified = fields["Last-Modified"].flatMap({ HTTPDate.parse($0, now: receivedAt) })
        else { return 0 }
        // A tenth of its age so far (§4.2.2).
        return min(max(0, madeAt.timeIntervalSince(modified)) / 10, Self.maximumHeuristicLifetime)
    }

    /// The date in Date, or the time of receipt (RFC 9110 §6.6.1).
    private var madeAt: Date {
        fields["Date"].flatMap { HTTPDate.parse($0, now: receivedAt) } ?? receivedAt
    }

    /// Seconds since the response was made or validated by its origin (RFC 9111 §4.2.3).
    package func age(at now: Date) -> Double {
        let apparent = max(0, receivedAt.timeIntervalSince(madeAt))
        // Of several values the first is used; a value that is not a number counts as 0 (§5.1).
        let said = fields.values(for: "Age").first.map { value in
            Double(CacheControl.seconds(value.utf8.prefix { $0 != UInt8(ascii: ",") && $0 != Grammar.space }))
        }
        let corrected = (said ?? 0) + max(0, receivedAt.timeIntervalSince(requestedAt))
        return max(apparent, corrected) + max(0, now.timeIntervalSince(receivedAt))
    }

    // MARK: Selection

    /// Whether the entry answers a request with these fields (§4.1).
    package func matches(_ request: HeaderFields) -> Bool {
        guard let names = Self.varying(fields) else { return false }
        return names.allSatisfy { name in
            let kept: String? = selecting[name] ?? nil
            return kept == Self.selectingValue(of: name, request)
        }
    }

    /// The values of a request with these fields in the form of `selecting`; nil if no request would match.
    package func selection(for request: HeaderFields) -> [String: String?]? {
        Self.varying(fields) == nil ? nil : Self.selecting(fields, request)
    }

    package static func selecting(_ response: HeaderFields, _ request: HeaderFields) -> [String: String?] {
        var selecting: [String: String?] = [:]
        for name in varying(response) ?? [] {
            selecting.updateValue(selectingValue(of: name, request), forKey: name)
        }
        return selecting
    }

    /// - Parameter name: In lower case.
    private static func selectingValue(of name: String, _ request: HeaderFields) -> String? {
        guard let value = request[name].map(normalized) else { return nil }
        return switch name {
        case "authorization", "cookie", "proxy-authorization": hidden(value)
        default: value
        }
    }

    /// A text that tells one secret from another without containing it. If OpenSSL cannot make a hash, the
    /// text is equal to no other, so that no request selects the response.
    private static func hidden(_ secret: String) -> String {
        DigestHash.sha256.hexadecimal(of: secret) ?? UUID().uuidString
    }

    /// The names in Vary, in lower case; nil for `*`, which no request matches.
    static func varying(_ fields: HeaderFields) -> [String]? {
        var names: [String] = []
        var isAny = false
        fields.forEachElement(of: "Vary") { element in
            let name = String(decoding: element, as: UTF8.self).lowercased()
            if name == "*" { isAny = true } else if !name.isEmpty { names.append(name) }
        }
        return isAny ? nil : names
    }

    /// Removes whitespace around commas, which does not matter.
    private static func normalized(_ value: String) -> String {
        value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: ",")
    }

    // MARK: Validation

    /// The fields that make a request conditional on the entry (§4.3.1); empty if the entry has no validator.
    package var conditions: [(name: String, value: String)] {
        var conditions: [(name: String, value: String)] = []
        // A validator with control characters is not sent back.
        if let tag = fields["ETag"], tag.utf8.allSatisfy(Grammar.isFieldValue) {
            conditions.append(("If-None-Match", tag))
        }
        if let date = fields["Last-Modified"], date.utf8.allSatisfy(Grammar.isFieldValue) {
            conditions.append(("If-Modified-Since", date))
        }
        return conditions
    }

    /// The entry as updated by a 304 (§3.2 and §4.3.4).
    ///
    /// - Parameter request: The fields of the request that the 304 answers: its Vary, which replaces the
    ///   entry's, may name others than that. Nil if they are not known; the entry then keeps the values that
    ///   it has.
    /// - Returns: Nil if the 304 is about another response: it names another entity tag.
    package func freshened(
        by response: ResponseHead, to request: HeaderFields? = nil, requestedAt: Date, receivedAt: Date
    ) -> CacheEntry? {
        if let new = response.fields["ETag"], let old = fields["ETag"], Self.opaque(new) != Self.opaque(old) {
            return nil
        }
        var entry = self
        entry.fields = Self.freshened(fields, by: response.fields, receivedAt: receivedAt)
        if let request, Self.varying(entry.fields) != Self.varying(fields) {
            entry.selecting = Self.selecting(entry.fields, request)
        }
        entry.requestedAt = requestedAt
        entry.receivedAt = receivedAt
        return entry
    }

    /// The fields of a stored response after a 304 with the fields `new`.
    package static func freshened(
        _ fields: HeaderFields, by new: HeaderFields, receivedAt: Date
    ) -> HeaderFields {
        var fields = fields
        var replaced: Set<String> = []
        let connection = hopByHop(new)
        let hasTag = new.hasReturnableTag
        for (name, value) in new {
            let key = name.lowercased()
            if describesContent.contains(key) || connection.contains(key) { continue }
            if key == "etag", !hasTag { continue }
            if replaced.insert(key).inserted {
                fields.set(name: name, value: value)
            } else {
                fields.append(name: name, value: value)
            }
        }
        // The stored age is the old response's; the new response may have its own.
        if !new.has("Age") { fields.remove("Age") }
        // The stored date is the old response's too: a new response without a date was made when it came (RFC
        // 9110 §6.6.1).
        if !new.has("Date") { fields.set(name: "Date", value: HTTPDate.format(receivedAt)) }
        return fields
    }

    /// The tag without the mark of a weak tag.
    static func opaque(_ tag: String) -> Substring {
        tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    }

    /// Fields of a 304 that must not replace the entry's: they frame a message, or describe how the stored
    /// content was encoded.
    private static let describesContent: Set<String> = [
        "content-length", "content-encoding", "content-type", "content-range", "trailer",
    ]
}
