internal import Logging

/// Where the library's lowest layer writes what a program's owner should know.
enum Log {
    static let core = Logger(label: "rondo.core")
}
