import Rondo

/// Reads the files that options name; `-` is standard input.
enum InputFile {
    /// The most bytes that are read of one file, because they are kept in memory.
    static let maximumSize = 1 << 30

    static func data(_ path: String, for option: String) throws(CommandFailure) -> Data {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(option, path, errno) }
        defer { if path != "-" { close(descriptor) } }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            let code = errno
            if count == 0 { return data }
            if count < 0, code == EINTR { continue }
            if count < 0 { throw failure(option, path, code) }
            data.append(contentsOf: buffer[..<count])
            if data.count > maximumSize { throw failure(option, path, EFBIG) }
        }
    }

    static func text(_ path: String, for option: String) throws(CommandFailure) -> String {
        String(decoding: try data(path, for: option), as: UTF8.self)
    }

    /// A field, or the lines of the file that `@FILE` names.
    static func fields(_ text: String, for option: String) throws(CommandFailure) -> [String] {
        guard text.first == "@" else { return [text] }
        let lines = try self.text(String(text.dropFirst()), for: option)
        return lines.split(whereSeparator: \.isNewline).map { String($0) }.filter { !$0.isEmpty }
    }

    private static func failure(_ option: String, _ path: String, _ code: Int32) -> CommandFailure {
        CommandFailure(
            "\(option): cannot read \(path): \(String(cString: strerror(code)))",
            status: ExitStatus.unreadable)
    }
}
