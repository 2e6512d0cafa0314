import Rondo

/// A file of names and passwords for hosts, in the format of ftp(1).
struct Netrc: Equatable, Sendable {
    private struct Word: Equatable {
        var bytes: [UInt8]
        /// Counted from 1.
        var line: Int

        /// Other bytes than UTF-8 are replaced.
        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    private struct Entry: Equatable {
        /// Nil means every host.
        var host: String?
        var login: Word?
        var password: Word?
    }

    private let entries: [Entry]

    /// - Throws: `CommandFailure` if a quote is not closed in its line.
    init(_ file: Data) throws(CommandFailure) {
        var entries: [Entry] = []
        var words = try Self.words(of: file)[...]
        while let word = words.popFirst() {
            switch word.text {
            case "machine": if let host = words.popFirst() { entries.append(Entry(host: host.text)) }
            case "default": entries.append(Entry())
            case "login": Self.set(\.login, words.popFirst(), of: &entries)
            case "password": Self.set(\.password, words.popFirst(), of: &entries)
            case "account": _ = words.popFirst()
            default: break
            }
        }
        self.entries = entries
    }

    private static func set(
        _ key: WritableKeyPath<Entry, Word?>, _ value: Word?, of entries: inout [Entry]
    ) {
        guard !entries.isEmpty else { return }
        entries[entries.count - 1][keyPath: key] = value
    }

    /// The words of the file without comments and macros; a macro ends with an empty line.
    private static func words(of file: Data) throws(CommandFailure) -> [Word] {
        var isMacro = false
        var words: [Word] = []
        for (index, line) in InputFile.lines(of: file).enumerated() {
            if isMacro {
                isMacro = !line.isEmpty
                continue
            }
            guard let found = Self.words(ofLine: line) else {
                throw failure("a quote is not closed", line: index + 1)
            }
            isMacro = found.first == Array("macdef".utf8)
            if !isMacro { words += found.map { Word(bytes: $0, line: index + 1) } }
        }
        return words
    }

    private static func failure(_ reason: String, line: Int) -> CommandFailure {
        CommandFailure("-n: line \(line): \(reason)", status: ExitStatus.unreadable)
    }

    /// The words, which may be in double quotes; nil if a quote is not closed.
    private static func words(ofLine line: ArraySlice<UInt8>) -> [[UInt8]]? {
        var words: [[UInt8]] = []
        var rest = line.drop(while: InputFile.isBlank)
        while let first = rest.first, first != UInt8(ascii: "#") {
            if first == UInt8(ascii: "\"") {
                rest.removeFirst()
                let word = QuotedText.read(&rest, controls: QuotedText.lineControls)
                guard word.isClosed else { return nil }
                words.append(word.text)
            } else {
                let word = rest.prefix { !InputFile.isBlank($0) }
                words.append(Array(word))
                rest = rest[word.endIndex...]
            }
            rest = rest.drop(while: InputFile.isBlank)
        }
        return words
    }

    /// Name and password for `host`; only those of `user` if that is given.
    ///
    /// - Throws: `CommandFailure` if they are not UTF-8.
    func credential(
        for host: String, user: String?
    ) throws(CommandFailure) -> (user: String, password: String)? {
        let entry = entries.first { entry in
            (entry.host.map { $0.lowercased() == host.lowercased() } ?? true)
                && (user == nil || entry.login == nil || entry.login?.text == user)
        }
        guard let entry, entry.login != nil || entry.password != nil else { return nil }
        let password = try Self.checked(entry.password)
        guard let user else { return (try Self.checked(entry.login), password) }
        return (user, password)
    }

    /// The text of the word, empty if there is none.
    private static func checked(_ word: Word?) throws(CommandFailure) -> String {
        guard let word else { return "" }
        guard let text = String(validating: word.bytes, as: UTF8.self) else {
            throw failure("not UTF-8", line: word.line)
        }
        return text
    }

    /// The file in the home folder.
    static var standardPath: String {
        let home = getenv("HOME").map { String(cString: $0) } ?? "."
        return home + "/.netrc"
    }
}
