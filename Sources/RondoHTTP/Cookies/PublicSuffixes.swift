#if PublicSuffix
    internal import CPsl
#endif

/// The domains under which anybody can have a name, `com` and `co.uk`: cookies must not be set for them.
///
/// By libpsl and the list of the machine where the trait `PublicSuffix` is on, which it is by default; else
/// every name without a dot is taken for one, and nothing more is known.
package struct PublicSuffixes: Sendable {
    package static let shared = PublicSuffixes()

    #if PublicSuffix
        /// `@unchecked Sendable`: the list is read only, made once and never freed; libpsl's look-ups change
        /// nothing.
        private struct List: @unchecked Sendable {
            /// The newer of the system's and the one that libpsl was built with; nil if there is neither.
            let pointer = psl_latest(nil)
        }

        private static let list = List()
    #endif

    /// - Parameter domain: In lower case, ASCII.
    package func contains(_ domain: String) -> Bool {
        if !domain.utf8.contains(UInt8(ascii: ".")) { return true }
        #if PublicSuffix
            guard let list = Self.list.pointer else { return false }
            return psl_is_public_suffix(list, domain) != 0
        #else
            return false
        #endif
    }
}
