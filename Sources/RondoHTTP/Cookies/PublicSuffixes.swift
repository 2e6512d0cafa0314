internal import RondoLibraries

private import struct Synchronization.Atomic

/// The domains under which names are given to the public, `com` and `co.uk`: cookies must not be set for them.
///
/// By libpsl and the list of the machine. On a machine without libpsl every name without a dot is taken for one, and
/// nothing more is known.
package struct PublicSuffixes: Sendable {
    package static let shared = PublicSuffixes()

    /// Whether there is a list. The first to ask loads it.
    package static var hasList: Bool { latest != nil }

    /// Whether the list was loaded, so that to ask takes no time.
    package static var isLoaded: Bool { loaded.load(ordering: .relaxed) }

    private static let loaded = Atomic(false)

    private static var latest: PublicSuffixList? {
        let list = PublicSuffixList.latest
        loaded.store(true, ordering: .relaxed)
        return list
    }

    /// - Parameter domain: In lower case, ASCII.
    package func contains(_ domain: String) -> Bool {
        if !domain.utf8.contains(UInt8(ascii: ".")) { return true }
        return Self.latest?.contains(domain) ?? false
    }
}
