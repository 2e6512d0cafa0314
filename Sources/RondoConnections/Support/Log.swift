internal import Logging

/// The log to which connections and their parts write warnings: `rondo.connections`.
enum Log {
    static let connections = Logger(label: "rondo.connections")

    /// Warns, once, that domains below which anyone can register a name cannot be told from others.
    static let missingSuffixList: Void = connections.warning(
        "libpsl or its list of public suffixes is missing: cookies are also stored for domains such as co.uk, below which anyone can register a name. Install both (libpsl5, publicsuffix)."
    )
}
