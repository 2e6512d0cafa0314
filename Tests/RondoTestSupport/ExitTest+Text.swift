package import Testing

extension ExitTest.Result {
    /// The text that the process wrote to its standard error.
    package var standardErrorText: String { String(decoding: standardErrorContent, as: UTF8.self) }
}
