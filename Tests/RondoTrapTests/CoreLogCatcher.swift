import Logging
import RondoTestSupport

/// Catches what the core logs, in a process that makes it the log's handler.
struct CoreLogCatcher: LogHandler {
    static let log = EventLog()

    let label: String
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    init(_ label: String, from level: Logger.Level) {
        self.label = label
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { if label == "rondo.core" { Self.log.note("\(event.message)") } }
}
