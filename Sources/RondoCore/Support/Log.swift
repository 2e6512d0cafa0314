internal import Logging

/// The log of the core.
enum Log {
    static let core = Logger(label: "rondo.core")
}
