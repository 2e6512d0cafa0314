internal import Logging

/// The log of sessions, `rondo.sessions`.
enum Log {
    static let sessions = Logger(label: "rondo.sessions")
}
