package import Foundation

/// The hosts that have asked to be spoken to by TLS only (RFC 6797).
///
/// A value: the process's own is kept by the connections, and written to a file where a program asks for it. Servers fill
/// it, so nothing that a server says takes more steps than the logarithm of the count. Only the writer of the
/// file looks at all hosts, in pieces (`list(from:into:)`): therefore a host stays in its slot as long as it is remembered.
package struct StrictTransportSecurity: Sendable {
    package struct Policy: Sendable, Equatable, Codable {
        package var expires: Date
        package var includesSubdomains: Bool
    }

    /// What a file holds, as JSON. By host, in lower case and without a dot at the end.
    package struct Listing: Sendable, Equatable, Codable {
        package var policies: [String: Policy] = [:]

        package init() {}
    }

    private struct Slot {
        let host: String
        var policy: Policy
        /// When it expires, as it was last said to be worth writing.
        var listedExpiry: Date
    }

    /// Hosts that are remembered; beyond, those that expire first are forgotten, which are the expired ones where there
    /// are any.
    package static let maximumCount = 10_000
    /// Bytes of a host that is remembered or looked up: the name system has none that is longer (RFC 1035 §2.3.4).
    package static let maximumHostLength = 253
    /// Bytes of a field that is looked at; a longer one is ignored. A head may have one of 256 KiB, of a hundred thousand
    /// directives.
    package static let maximumFieldLength = 4_096
    /// Seconds by which an expiry may move before that is worth writing, or a tenth of `max-age` if that is less: each
    /// response moves it.
    package static let expiryTolerance: Double = 3_600
    /// Hosts in one piece of a listing.
    static let pieceLength = 256

    private var slots: [Slot?] = []
    /// Slots that hold nothing.
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

    /// Adds some hosts to `listing`: all of them in the end if it is called from position 0 on, with what it returns.
    ///
    /// Hosts may come and go between two calls. One that stays meanwhile is in the listing.
    ///
    /// - Returns: The next position; nil where there are no more.
    package func list(from position: Int, into listing: inout Listing) -> Int? {
        let end = min(position + Self.pieceLength, slots.count)
        guard position < end else { return nil }
        for case let slot? in slots[position..<end] { listing.policies[slot.host] = slot.policy }
        return end < slots.count ? end : nil
    }

    // MARK: Receiving

    /// Takes the Strict-Transport-Security field of a response that came by TLS without any error (§8.1); of
    /// several the first counts.
    ///
    /// - Returns: Whether that is worth writing.
    @discardableResult
    package mutating func received(_ fieldValue: String, from host: String, now: Date) -> Bool {
        // Addresses are no host names (§8.1.1).
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

    /// - Returns: Whether that is worth writing.
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

    /// `url` by https where its host is covered: port 80 becomes 443, every other stays (§8.3); nil where
    /// nothing is to be changed.
    package func upgraded(_ url: URL, now: Date) -> URL? {
        guard !isEmpty, url.scheme?.lowercased() == "http", let host = url.host,
            covers(host, now: now), var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return nil }
        parts.scheme = "https"
        if parts.port == 80 { parts.port = nil }
        return parts.url
    }

    /// In lower case and without a dot at the end; nil where it can be no host's name.
    private static func canonical(_ host: String) -> String? {
        var host = host[...]
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        guard !host.isEmpty, host.utf8.count <= maximumHostLength else { return nil }
        return host.lowercased()
    }
}
