import Rondo

/// A file of names and passwords for hosts, in the format of ftp(1).
struct Netrc: Equatable, Sendable {
    private struct Entry: Equatable {
        /// Nil means every host.
        var host: String?
        var login: String?
        var password: String?
    }

    private let entries: [Entry]

    /// - Throws: `CommandFailure` if a quote is not closed in its line, or a line with words is not UTF-8.
    init(_ file: Data) throws(CommandFailure) {
        var entries: [Entry] = []
        var words = try Self.words(of: file)[...]
        while let word = words.popFirst() {
            switch word {
            case "machine": if let host = words.popFirst() { entries.append(Entry(host: host)) }
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
        _ key: WritableKeyPath<Entry, String?>, _ value: String?, of entries: inout [Entry]
    ) {
        guard !entries.isEmpty else { return }
        entries[entries.count - 1][keyPath: key] = value
    }

    /// The words of the file without comments and macros; a macro ends with an empty line.
    private static func words(of file: Data) throws(CommandFailure) -> [String] {
        var isMacro = false
        var words: [String] = []
        for (index, line) in InputFile.lines(of: file).enumerated() {
            if isMacro {
                isMacro = !line.text.isEmpty
                continue
            }
            guard let found = Self.words(ofLine: line.text) else {
                throw failure("a quote is not closed", line: index + 1)
            }
            isMacro = found.first == "macdef"
            if isMacro || found.isEmpty { continue }
            guard line.isUTF8 else { throw failure("not UTF-8", line: index + 1) }
            words += found
        }
        return words
    }

    private static func failure(_ reason: String, line: Int) -> CommandFailure {
        CommandFailure("-n: line \(line): \(reason)", status: ExitStatus.unreadable)
    }

    /// The words, which may be in double quotes; nil if a quote is not closed.
    private static func words(ofLine line: Substring) -> [String]? {
        var words: [String] = []
        var rest = line.drop(while: InputFile.isBlank)
        while let first = rest.first, first != "#" {
            if first == "\"" {
                rest.removeFirst()
                let word = QuotedText.read(&rest, controls: QuotedText.lineControls)
                guard word.isClosed else { return nil }
                words.append(word.text)
            } else {
                let word = rest.prefix { !InputFile.isBlank($0) }
                words.append(String(word))
                rest = rest[word.endIndex...]
            }
            rest = rest.drop(while: InputFile.isBlank)
        }
        return words
    }

    /// Name and password for `host`; only those of `user` if that is given.
    func credential(for host: String, user: String?) -> (user: String, password: String)? {
        let entry = entries.first { entry in
            (entry.host.map { $0.lowercased() == host.lowercased() } ?? true)
                && (user == nil || entry.login == nil || entry.login == user)
        }
        guard let entry, entry.login != nil || entry.password != nil else { return nil }
        return (user ?? entry.login ?? "", entry.password ?? "")
    }

    /// The file in the home folder.
    static var standardPath: String {
        let home = getenv("HOME").map { String(cString: $0) } ?? "."
        return home + "/.netrc"
    }
}
