// Domains below which a registry gives out names, as far as certificates are concerned.

internal import RondoCore

#if PublicSuffix
    internal import CPsl
#endif

/// Asks libpsl, if it is there, whether a domain is a registry's.
enum RegistrySuffix {
    #if PublicSuffix
        /// `@unchecked Sendable`: the list is read only, made once and never freed; libpsl's look-ups change nothing.
        private struct List: @unchecked Sendable {
            /// The one that libpsl was built with, which costs nothing to have: the part that counts here hardly changes.
            let pointer = psl_builtin() ?? psl_latest(nil)
        }

        private static let list = List()
    #endif

    /// Whether a wildcard right below `domain` would stand for the names of many owners: `co.uk`, but not `github.io`.
    ///
    /// As in Chromium only the registries' part of the public suffix list counts: a company below whose domain its
    /// customers have names may have a certificate for all of them, and GitHub has. (curl and OpenSSL ask for two labels
    /// behind the star and know no list.) Without libpsl the answer is no.
    ///
    /// - Parameter domain: ASCII.
    static func contains(_ domain: some StringProtocol) -> Bool {
        #if PublicSuffix
            guard let list = Self.list.pointer else { return false }
            return psl_is_public_suffix2(list, domain.lowercased(), PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE)
                != 0
        #else
            return false
        #endif
    }
}
