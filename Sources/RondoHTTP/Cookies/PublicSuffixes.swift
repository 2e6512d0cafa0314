internal import RondoLibraries

private import struct Synchronization.Atomic

/// The domains under which the public can register names, such as `com` and `co.uk`: cookies must not be set
/// for them.
///
/// The list is libpsl's and the machine's. Without libpsl only a name without a dot counts as a public
/// suffix.
package struct PublicSuffixes: Sendable {
    package static let shared = PublicSuffixes()

    /// Whether there is a list. The first call loads it.
    package static var hasList: Bool { latest != nil }

    /// Whether the list has been loaded, so that looking up a domain takes no time.
    package static var isLoaded: Bool { loaded.load(ordering: .relaxed) }

    private static let loaded = Atomic(false)

    private static var latest: PublicSuffixList? {
        let list = PublicSuffixList.latest
        loaded.store(true, ordering: .relaxed)
        return list
    }

    /// - Parameter domain: In lower case, ASCII. A dot at its end, as in `co.uk.`, makes no difference: the
    ///   list has no names with one, and would take that for a name below the suffix `uk`.
    package func contains(_ domain: String) -> Bool {
        let name = domain.utf8.last == UInt8(ascii: ".") ? String(domain.dropLast()) : domain
        if !name.utf8.contains(UInt8(ascii: ".")) { return true }
        return Self.latest?.contains(name) ?? false
    }
}
