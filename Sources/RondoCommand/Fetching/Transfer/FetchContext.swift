import Rondo
import RondoLab

/// The objects that the transfers of a command share. On the loop's thread only.
final class FetchContext {
    let common: CommonSettings
    let mode: RunLoop.Mode
    let messages: Messages
    /// The cookies of each operation; nil if none are kept.
    private var cookies: FetchCookies?
    private var readCookieFiles: Set<Int> = []
    /// Files that heads were written to already.
    private var headFiles: Set<String> = []

    init(_ common: CommonSettings, mode: RunLoop.Mode, messages: Messages) {
        self.common = common
        self.mode = mode
        self.messages = messages
    }

    /// The cookies for a transfer of `operation`; nil if none are kept.
    func cookies(of operation: FetchOperation, number: Int) -> FetchCookies? {
        guard !operation.cookieFiles.isEmpty || operation.cookieJar != nil else { return nil }
        let cookies = cookies ?? FetchCookies()
        self.cookies = cookies
        if readCookieFiles.insert(number).inserted {
            for path in operation.cookieFiles {
                cookies.read(path, droppingSessions: operation.dropsSessionCookies)
            }
        }
        return cookies
    }

    /// Writes the cookies to the operation's cookie jar. A failure is a warning, as in curl.
    func saveCookies(of operation: FetchOperation) {
        guard let path = operation.cookieJar, let cookies else { return }
        do {
            try OutputFile.write(cookies.fileText, to: path)
        } catch {
            messages.warn("-c: \(FetchTransfer.failure(error).message)")
        }
    }

    /// Prints a line of `--events`.
    func report(_ event: @autoclosure () -> JSONText) throws(FetchFailure) {
        if common.printsEvents { try print(event().text + "\n") }
    }

    /// Prints to standard output.
    func print(_ text: String) throws(FetchFailure) {
        try BodySink(.standardOutput(evenBinary: true)).write(Data(text.utf8))
    }

    /// Writes heads to the file of `-D`. The first call replaces its content, later ones append.
    func write(heads: String, to path: String) throws(FetchFailure) {
        try write(heads, to: path, headFiles.insert(path).inserted ? .replaced : .appended)
    }

    /// Replaces the content of the file of `--etag-save` by the response's ETag, if any. A 304 without one
    /// leaves the file, like the document that it belongs to, as it is.
    func saveETag(of head: ReceivedHead, _ operation: FetchOperation) throws(FetchFailure) {
        guard let path = operation.etagToSave else { return }
        let etag = head.entityTag
        if etag == nil, head.status == 304 { return }
        try write(etag.map { $0 + "\n" } ?? "", to: path, .replaced)
    }

    /// Makes the files of `-D` and `--etag-save`, before a response has come.
    func makeFiles(of operation: FetchOperation) throws(FetchFailure) {
        if let path = operation.headPath { try write(heads: "", to: path) }
        if let path = operation.etagToSave { try write("", to: path, .appended) }
    }

    /// Writes to the file of an option; - is standard output.
    private func write(
        _ text: String, to path: String, _ existing: BodySink.Existing
    ) throws(FetchFailure) {
        var status = stat()
        let isStream = path == "-" || stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
        // The reader of a pipe would take its closing for the end.
        if text.isEmpty, isStream { return }
        let sink = BodySink(path == "-" ? .standardOutput(evenBinary: true) : .file(path, existing))
        try sink.write(Data(text.utf8))
        try sink.close()
    }
}

/// Prints messages to standard error or to the file of `--stderr`.
struct Messages: Sendable {
    private let descriptor: Int32
    private let tellsErrors: Bool
    private let tellsWarnings: Bool

    /// - Throws: `CommandFailure` if the file cannot be written.
    init(_ common: CommonSettings) throws {
        tellsErrors = common.tellsErrors
        tellsWarnings = !common.isSilent
        switch common.messagePath {
        case nil: descriptor = STDERR_FILENO
        case "-": descriptor = STDOUT_FILENO
        case let path?:
            descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
            if descriptor < 0 {
                throw CommandFailure("--stderr: cannot write \(path): \(String(cString: strerror(errno)))")
            }
        }
    }

    func write(_ text: String) {
        var text = text
        // A failure cannot be reported, because this is where reports go.
        _ = text.withUTF8 { writeAll(descriptor, UnsafeRawBufferPointer($0)) }
    }

    func tell(_ failure: FetchFailure) {
        if tellsErrors { write("rondo: (\(failure.status.rawValue)) \(failure.message)\n") }
    }

    func warn(_ text: String) {
        if tellsWarnings { write("rondo: warning: \(text)\n") }
    }
}
