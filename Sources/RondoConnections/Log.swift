internal import Logging

/// The log to which connections and their parts write warnings: `rondo.connections`.
enum Log {
    static let connections = Logger(label: "rondo.connections")

    /// Warns, once, that domains below which anyone can register a name cannot be told from others.
    static let missingSuffixList: Void = connections.warning(
        "libpsl or its list is not there: a cookie is kept also for a domain below which anybody can have a name, as co.uk"
    )
}
