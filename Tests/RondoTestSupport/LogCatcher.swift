package import Logging

/// Keeps what is logged, in a process of a test's own: each message with its level, as in "warning: …".
package struct LogCatcher: LogHandler {
    package static let log = EventLog()

    private let isKept: Bool
    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level

    /// Makes this the handler of all logs of the process.
    ///
    /// - Parameter label: The log whose messages are kept; nil: all.
    package static func begin(_ label: String? = nil, from level: Logger.Level = .warning) {
        LoggingSystem.bootstrap { LogCatcher(isKept: label == nil || $0 == label, logLevel: level) }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) { if isKept { Self.log.note("\(event.level): \(event.message)") } }
}
