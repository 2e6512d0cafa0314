internal import Logging

/// The log of the core.
enum Log {
    static let core = Logger(label: "rondo.core")
}

extension RunLoop {
    /// Logs a warning of a layer above that has no log of its own.
    package static func warn(_ message: String) { Log.core.warning("\(message)") }
}
