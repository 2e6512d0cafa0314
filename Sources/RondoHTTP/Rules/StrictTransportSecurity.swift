package import Foundation

/// The hosts that have asked to be spoken to by TLS only (RFC 6797).
///
/// A value: the process's own is kept by the connections, and written to a file where a program asks for it.
package struct StrictTransportSecurity: Sendable, Equatable, Codable {
    package struct Policy: Sendable, Equatable, Codable {
        package var expires: Date
        package var includesSubdomains: Bool
    }

    /// Hosts that are remembered; beyond, those that expire first are forgotten.
    package static let maximumCount = 10_000

    /// By host, in lower case and without a dot at the end.
    package private(set) var policies: [String: Policy] = [:]

    package init() {}

    package var isEmpty: Bool { policies.isEmpty }

    // MARK: Receiving

    /// Takes the Strict-Transport-Security field of a response that came by TLS without any error (§8.1); of
    /// several the first counts.
    package mutating func received(_ fieldValue: String, from host: String, now: Date) {
        // Addresses are no host names (§8.1.1).
        let host = Self.canonical(host)
        guard !host.isEmpty, !CookieRules.isAddress(host),
            let (maxAge, includesSubdomains) = Self.parse(fieldValue)
        else { return }
        guard maxAge > 0 else {
            policies[host] = nil
            return
        }
        policies[host] = Policy(
            expires: now.addingTimeInterval(Double(maxAge)), includesSubdomains: includesSubdomains)
        if policies.count > Self.maximumCount { forget(now) }
    }

    private mutating func forget(_ now: Date) {
        policies = policies.filter { $0.value.expires > now }
        while policies.count > Self.maximumCount,
            let first = policies.min(by: { $0.value.expires < $1.value.expires })
        {
            policies[first.key] = nil
        }
    }

    /// §6.1: directives in any order and case, each at most once, `max-age` required; nil for anything else,
    /// which has to be ignored as a whole.
    private static func parse(_ value: String) -> (maxAge: Int64, includesSubdomains: Bool)? {
        var names: Set<String> = []
        var (maxAge, includesSubdomains, isSound): (Int64?, Bool, Bool) = (nil, false, true)
        FieldParameters.forEachMember(of: value[...].utf8) { name, value in
            if name.isEmpty, value == nil { return }
            isSound = isSound && names.insert(name).inserted
            switch name {
            case "max-age":
                let digits = value ?? ""
                isSound = isSound && !digits.isEmpty && digits.utf8.allSatisfy(Grammar.isDigit)
                maxAge = CacheControl.seconds(digits.utf8)
            case "includesubdomains":
                isSound = isSound && value == nil
                includesSubdomains = true
            default: break
            }
        }
        guard isSound else { return nil }
        return maxAge.map { ($0, includesSubdomains) }
    }

    // MARK: Asking

    /// Whether `host` may be spoken to by TLS only: it or a domain above it that includes it has said so
    /// (§8.2).
    package func covers(_ host: String, now: Date) -> Bool {
        if policies.isEmpty { return false }
        let host = Self.canonical(host)
        if CookieRules.isAddress(host) { return false }
        var rest = host[...]
        while !rest.isEmpty {
            if let policy = policies[String(rest)], policy.expires > now,
                rest.count == host.count || policy.includesSubdomains
            {
                return true
            }
            guard let dot = rest.firstIndex(of: ".") else { return false }
            rest = rest[rest.index(after: dot)...]
        }
        return false
    }

    /// `url` by https where its host is covered: port 80 becomes 443, every other stays (§8.3); nil where
    /// nothing is to be changed.
    package func upgraded(_ url: URL, now: Date) -> URL? {
        guard !policies.isEmpty, url.scheme?.lowercased() == "http", let host = url.host,
            covers(host, now: now), var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return nil }
        parts.scheme = "https"
        if parts.port == 80 { parts.port = nil }
        return parts.url
    }

    private static func canonical(_ host: String) -> String {
        let host = host.lowercased()
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }
}
