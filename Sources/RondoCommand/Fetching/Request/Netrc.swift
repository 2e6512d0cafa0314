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

    init(_ text: String) {
        var entries: [Entry] = []
        var words = Self.words(of: text)[...]
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

    /// The words of the text without comments and macros; a macro ends with an empty line.
    private static func words(of text: String) -> [String] {
        var isMacro = false
        var words: [String] = []
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            if isMacro {
                isMacro = !line.isEmpty
                continue
            }
            let found = line.split(whereSeparator: \.isWhitespace).prefix { !$0.hasPrefix("#") }
            isMacro = found.first == "macdef"
            if !isMacro { words += found.map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "\"")) } }
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
