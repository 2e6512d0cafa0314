/// Config files in curl's format (`-K`): one option on each line, with or without its dashes, and its value
/// after a space, colon or equals sign.
enum ConfigFile {
    /// The same options as command-line arguments.
    static func arguments(in text: String) -> [String] {
        text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline).flatMap(arguments(ofLine:))
    }

    private static func arguments(ofLine line: Substring) -> [String] {
        var rest = line.drop(while: \.isWhitespace)
        if rest.isEmpty || rest.first == "#" { return [] }
        let hasDash = rest.first == "-"
        let word = rest.prefix { character in
            !character.isWhitespace && (hasDash || (character != "=" && character != ":"))
        }
        rest = rest.dropFirst(word.count).drop { $0.isWhitespace || (!hasDash && ($0 == "=" || $0 == ":")) }
        // A value may be joined to a one-letter option.
        let option = hasDash ? String(word) : word.count == 1 ? "-\(word)" : "--\(word)"
        let value = value(at: rest)
        return value.map { [option, $0] } ?? [option]
    }

    /// A value in double quotes, with `\"`, `\\`, `\n`, `\r`, `\t` and `\v`, or the text up to the next
    /// blank.
    private static func value(at rest: Substring) -> String? {
        guard let first = rest.first else { return nil }
        guard first == "\"" else {
            let word = rest.prefix { !$0.isWhitespace }
            return word.hasPrefix("#") ? nil : String(word)
        }
        var value = ""
        var characters = rest.dropFirst()
        while let character = characters.popFirst(), character != "\"" {
            guard character == "\\" else {
                value.append(character)
                continue
            }
            switch characters.popFirst() {
            case "t": value += "\t"
            case "n": value += "\n"
            case "r": value += "\r"
            case "v": value += "\u{B}"
            case let other?: value.append(other)
            case nil: break
            }
        }
        return value
    }
}
