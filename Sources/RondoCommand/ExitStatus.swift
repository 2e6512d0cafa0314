/// The statuses that the command exits with, 0 aside.
enum ExitStatus {
    static let failed: Int32 = 1
    static let badUsage: Int32 = 2

    /// A file of a fetch's command line; as curl has it.
    static let unreadable: Int32 = 26

    /// What a shell reports of a program that a signal ended.
    static func ended(by signal: Int32) -> Int32 { 128 + signal }
}
