internal import Logging

/// Where connections and what belongs to them write their warnings: the log `rondo.connections`.
enum Log {
    static let connections = Logger(label: "rondo.connections")

    /// Says once that domains which many owners share cannot be told from others.
    static let missingSuffixList: Void = connections.warning(
        "libpsl or its list is not there: a cookie is kept also for a domain below which anybody can have a name, as co.uk"
    )
}
