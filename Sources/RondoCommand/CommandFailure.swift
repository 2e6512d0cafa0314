/// An error that ends the command with a sentence on standard error.
struct CommandFailure: Error {
    var message: String
    var status = ExitStatus.failed

    init(_ message: String, status: Int32 = ExitStatus.failed) {
        self.message = message
        self.status = status
    }

    /// The command line is invalid.
    static func usage(_ message: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.badUsage)
    }
}
