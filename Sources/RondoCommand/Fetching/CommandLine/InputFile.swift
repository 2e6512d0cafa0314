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

    /// - Throws: `CommandFailure` if the file cannot be read or is not UTF-8: other bytes would be replaced.
    static func text(_ path: String, for option: String) throws(CommandFailure) -> String {
        guard let text = String(validating: try data(path, for: option), as: UTF8.self) else {
            throw CommandFailure("\(option): \(path) is not UTF-8", status: ExitStatus.unreadable)
        }
        return text
    }

    /// The lines of a file's text, empty ones too, without the LF or CR LF at their ends. Other characters
    /// that end a line by Unicode are part of it, as in curl, and so is another CR: see `withoutLineEnds`.
    static func lines(of text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    }

    /// The lines of a file's bytes, split in the same way. Only the text that is used must be UTF-8.
    static func lines(of file: Data) -> [ArraySlice<UInt8>] {
        var lines = [UInt8](file).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for index in lines.indices.dropLast() where lines[index].last == UInt8(ascii: "\r") {
            lines[index].removeLast()
        }
        return lines
    }

    /// True if the character separates words of a file or of an option's value, as in curl.
    static func isBlank(_ character: Character) -> Bool { character.isASCII && character.isWhitespace }

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || (UInt8(ascii: "\t")...UInt8(ascii: "\r")).contains(byte)
    }

    /// A field, or the lines of the file that `@FILE` names.
    static func fields(_ text: String, for option: String) throws(CommandFailure) -> [String] {
        guard text.first == "@" else { return [text] }
        let file = try self.text(String(text.dropFirst()), for: option)
        return lines(of: file).filter { !$0.isEmpty }.map { String($0) }
    }

    private static func failure(_ option: String, _ path: String, _ code: Int32) -> CommandFailure {
        CommandFailure(
            "\(option): cannot read \(path): \(String(cString: strerror(code)))",
            status: ExitStatus.unreadable)
    }
}

extension String {
    /// The text without CR and LF, as curl reads a file of `-w`. Curl 7.88 also loses the text between a CR
    /// and the end of its line, which later versions keep.
    var withoutLineEnds: String { String(unicodeScalars.filter { $0 != "\r" && $0 != "\n" }) }
}
