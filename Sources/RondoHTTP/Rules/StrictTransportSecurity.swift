package import Foundation

/// The hosts that have asked for connections by TLS only (RFC 6797).
///
/// A value: the connections hold the process's instance, and write it to a file if a program asks for it.
/// Servers fill it, so the steps for anything that a server sends grow only with the logarithm of the count.
/// Only writing the file visits all hosts, piece by piece (`list(from:into:)`); therefore a host keeps its
/// slot as long as it is remembered.
package struct StrictTransportSecurity: Sendable {
    package struct Policy: Sendable, Equatable, Codable {
        package var expires: Date
        package var includesSubdomains: Bool
    }

    /// The content of a file, as JSON. By host, in lower case and without a trailing dot.
    package struct Listing: Sendable, Equatable, Codable {
        package var policies: [String: Policy] = [:]

        package init() {}
    }

    private struct Slot {
        let host: String
        var policy: Policy
        /// The expiry when a change was last reported as worth writing.
        var listedExpiry: Date
    }

    /// The most hosts that are remembered; beyond that, the host that expires first is forgotten, which is an
    /// expired one if there is any.
    package static let maximumCount = 10_000
    /// The most bytes of a host that is remembered or looked up; DNS has no longer names (RFC 1035 §2.3.4).
    package static let maximumHostLength = 253
    /// The most bytes of a field that is read; a longer one is ignored. A head may contain one of 256 KiB,
    /// with a hundred thousand directives.
    package static let maximumFieldLength = 4_096
    /// Seconds by which an expiry may move without being worth writing, or a tenth of `max-age` if that is
    /// less: each response moves the expiry.
    package static let expiryTolerance: Double = 3_600
    /// The number of slots in one piece of a listing.
    static let pieceLength = 256

    private var slots: [Slot?] = []
    /// The numbers of empty slots.
    private var free: [Int] = []
    private var slotsByHost: [String: Int] = [:]
    private var queue = ExpiryQueue()

    package init() {}

    package var isEmpty: Bool { slotsByHost.isEmpty }

    package var count: Int { slotsByHost.count }

    // MARK: Listing

    package init(_ listing: Listing) {
        for (host, policy) in listing.policies {
            guard let host = Self.canonical(host) else { continue }
            _ = remember(policy, of: host, tolerance: 0)
        }
    }

    /// Adds some hosts to `listing`. Start at position 0 and pass each returned position to the next call, to
    /// add all hosts.
    ///
    /// Hosts may be added and removed between two calls. A host that stays meanwhile is in the listing.
    ///
    /// - Returns: The next position; nil if there are no more hosts.
    package func list(from position: Int, into listing: inout Listing) -> Int? {
        let end = min(position + Self.pieceLength, slots.count)
        guard position < end else { return nil }
        for case let slot? in slots[position..<end] { listing.policies[slot.host] = slot.policy }
        return end < slots.count ? end : nil
    }

    // MARK: Receiving

    /// Processes the Strict-Transport-Security field of a response received by TLS without any error (§8.1);
    /// of several fields, pass the first.
    ///
    /// - Returns: Whether the change is worth writing.
    @discardableResult
    package mutating func received(_ fieldValue: String, from host: String, now: Date) -> Bool {
        // An address is not a host name (§8.1.1).
        guard fieldValue.utf8.count <= Self.maximumFieldLength, let host = Self.canonical(host),
            !CookieRules.isAddress(host),
            let (maxAge, includesSubdomains) = Self.parse(fieldValue)
        else { return false }
        guard maxAge > 0 else {
            guard let slot = slotsByHost[host] else { return false }
            forget(slot)
            return true
        }
        let policy = Policy(
            expires: now.addingTimeInterval(Double(maxAge)), includesSubdomains: includesSubdomains)
        return remember(policy, of: host, tolerance: min(Self.expiryTolerance, Double(maxAge) / 10))
    }

    /// - Returns: Whether the change is worth writing.
    private mutating func remember(_ policy: Policy, of host: String, tolerance: Double) -> Bool {
        if let number = slotsByHost[host], var slot = slots[number] {
            let isWorthListing =
                slot.policy.includesSubdomains != policy.includesSubdomains
                || abs(policy.expires.timeIntervalSince(slot.listedExpiry)) > tolerance
            slot.policy = policy
            if isWorthListing { slot.listedExpiry = policy.expires }
            slots[number] = slot
            queue.set(number, expires: policy.expires.timeIntervalSinceReferenceDate)
            return isWorthListing
        }
        let slot = Slot(host: host, policy: policy, listedExpiry: policy.expires)
        let number = free.popLast() ?? slots.count
        if number == slots.count { slots.append(slot) } else { slots[number] = slot }
        slotsByHost[host] = number
        queue.set(number, expires: policy.expires.timeIntervalSinceReferenceDate)
        guard slotsByHost.count > Self.maximumCount, let first = queue.first else { return true }
        forget(first)
        return first != number
    }

    private mutating func forget(_ number: Int) {
        guard let slot = slots[number] else { return }
        queue.remove(number)
        slotsByHost[slot.host] = nil
        slots[number] = nil
        free.append(number)
    }

    /// Parses §6.1: directives in any order and case, each at most once, `max-age` required. Returns nil for
    /// anything else, which has to be ignored as a whole.
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

    // MARK: Looking up

    /// Whether connections to `host` must use TLS: the host, or a parent domain whose policy includes
    /// subdomains, has asked for it (§8.2).
    package func covers(_ host: String, now: Date) -> Bool {
        if isEmpty { return false }
        guard let host = Self.canonical(host), !CookieRules.isAddress(host) else { return false }
        var rest = host[...]
        while !rest.isEmpty {
            if let policy = policy(of: String(rest)), policy.expires > now,
                rest.startIndex == host.startIndex || policy.includesSubdomains
            {
                return true
            }
            guard let dot = rest.firstIndex(of: ".") else { return false }
            rest = rest[rest.index(after: dot)...]
        }
        return false
    }

    private func policy(of host: String) -> Policy? {
        slotsByHost[host].flatMap { slots[$0]?.policy }
    }

    /// `url` with https, if its host is covered: port 80 becomes 443, any other port stays (§8.3); nil if
    /// nothing has to change.
    package func upgraded(_ url: URL, now: Date) -> URL? {
        guard !isEmpty, url.scheme?.lowercased() == "http", let host = url.host,
            covers(host, now: now), var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return nil }
        parts.scheme = "https"
        if parts.port == 80 { parts.port = nil }
        return parts.url
    }

    /// The host in lower case without a trailing dot; nil if it cannot be a host name.
    private static func canonical(_ host: String) -> String? {
        var host = host[...]
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        guard !host.isEmpty, host.utf8.count <= maximumHostLength else { return nil }
        return host.lowercased()
    }
}
