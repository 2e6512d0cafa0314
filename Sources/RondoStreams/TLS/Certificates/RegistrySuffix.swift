// The domains below which a registry gives out names, as the check of certificates needs them.

internal import RondoLibraries

/// Asks libpsl, if it is installed, whether a domain is a registry's.
enum RegistrySuffix {
    /// Whether a wildcard right below `domain` would cover the names of many owners: true of `co.uk`, false
    /// of `github.io`.
    ///
    /// As in Chromium, only the registries' part of the public suffix list counts. A company that gives its
    /// customers names below its own domain may have a certificate for all of them, as GitHub has. (curl and
    /// OpenSSL use no list; they require two labels behind the star.) The list that libpsl was built with is
    /// recent enough, because the registries' part hardly changes. Without libpsl the answer is no.
    ///
    /// - Parameter domain: ASCII.
    static func contains(_ domain: some StringProtocol) -> Bool {
        PublicSuffixList.builtin?.isRegistry(domain.lowercased()) ?? false
    }
}
