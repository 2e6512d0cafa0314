/// The exit statuses of the command other than 0.
enum ExitStatus {
    static let failed: Int32 = 1
    static let badUsage: Int32 = 2

    /// A file that an option of fetch names cannot be read. The number is curl's.
    static let unreadable: Int32 = 26

    /// The status that a shell reports for a program that was ended by a signal.
    static func ended(by signal: Int32) -> Int32 { 128 + signal }
}
