internal import Logging

/// Where sessions write their warnings: the log `rondo.sessions`.
enum Log {
    static let sessions = Logger(label: "rondo.sessions")
}
