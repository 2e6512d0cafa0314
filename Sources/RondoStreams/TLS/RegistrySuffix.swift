// Domains below which a registry gives out names, as far as certificates are concerned.

internal import RondoLibraries

/// Asks libpsl, if it is there, whether a domain is a registry's.
enum RegistrySuffix {
    /// Whether a wildcard right below `domain` would stand for the names of many owners: `co.uk`, but not `github.io`.
    ///
    /// As in Chromium only the registries' part of the public suffix list counts: a company below whose domain its
    /// customers have names may have a certificate for all of them, and GitHub has. (curl and OpenSSL ask for two labels
    /// behind the star and know no list.) The list that libpsl was built with will do: the registries' part hardly
    /// changes. Without libpsl the answer is no.
    ///
    /// - Parameter domain: ASCII.
    static func contains(_ domain: some StringProtocol) -> Bool {
        PublicSuffixList.builtin?.isRegistry(domain.lowercased()) ?? false
    }
}
