internal import Logging

/// The log of children and processes.
enum Log {
    static let system = Logger(label: "rondo.system")
}
