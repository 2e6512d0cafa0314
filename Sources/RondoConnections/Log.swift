internal import Logging

/// Where connections and what belongs to them write their warnings: the log `rondo.connections`.
enum Log {
    static let connections = Logger(label: "rondo.connections")
}
