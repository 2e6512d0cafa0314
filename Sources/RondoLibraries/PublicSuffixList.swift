internal import CRondoLibraries

/// The public suffix list, by libpsl: domains below which names are given to the public, `com`, `co.uk`,
/// `github.io`.
///
/// `@unchecked Sendable`: the lists are read only, made once and never freed, and look-ups change nothing;
/// the functions are those of a library that is never unloaded.
package struct PublicSuffixList: @unchecked Sendable {
    /// The newer of the machine's list and libpsl's built-in list; nil without libpsl, or if it has neither.
    package static let latest = PublicSuffixList { builtin, latest in latest(nil) ?? builtin() }

    /// libpsl's built-in list, which costs nothing to have, or else the machine's; nil if there is neither.
    package static let builtin = PublicSuffixList { builtin, latest in builtin() ?? latest(nil) }

    private let list: OpaquePointer
    private let isSuffix: rondo_psl_contains

    private init?(_ choose: (rondo_psl_builtin, rondo_psl_latest) -> OpaquePointer?) {
        guard let library = SharedLibrary("libpsl.so.5"),
            let builtin = library.function("psl_builtin", rondo_psl_builtin.self),
            let latest = library.function("psl_latest", rondo_psl_latest.self),
            let isSuffix = library.function("psl_is_public_suffix2", rondo_psl_contains.self),
            let list = choose(builtin, latest)
        else { return nil }
        (self.list, self.isSuffix) = (list, isSuffix)
    }

    /// - Parameter domain: In lower case, ASCII. A name that no rule is about counts as one below a suffix of
    ///   one label.
    package func contains(_ domain: String) -> Bool {
        isSuffix(list, domain, Int32(rondo_psl_icann | rondo_psl_private)) != 0
    }

    /// Whether the part of the list that is the registries' has `domain` itself: `co.uk`, but not
    /// `github.io`.
    ///
    /// - Parameter domain: In lower case, ASCII.
    package func isRegistry(_ domain: String) -> Bool {
        isSuffix(list, domain, Int32(rondo_psl_icann | rondo_psl_no_star_rule)) != 0
    }
}
