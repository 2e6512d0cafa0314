import Rondo

/// Config files in curl's format (`-K`): one option on each line, with or without its dashes, and its value
/// after a space, colon or equals sign.
enum ConfigFile {
    struct Line: Equatable {
        /// Counted from 1.
        let number: Int
        /// A letter, or letters, behind one dash, or a name behind two.
        let option: String
        let value: String?
        /// False if bytes of the line were replaced.
        var isUTF8 = true
    }

    /// The lines that have an option.
    static func lines(in file: Data) -> [Line] {
        InputFile.lines(of: file).enumerated().compactMap { index, line in
            var found = self.line(line.text, number: index + 1)
            found?.isUTF8 = line.isUTF8
            return found
        }
    }

    private static func line(_ text: Substring, number: Int) -> Line? {
        var rest = text.drop(while: InputFile.isBlank)
        if rest.isEmpty || rest.first == "#" { return nil }
        let hasDash = rest.first == "-"
        let word = rest.prefix { character in
            !InputFile.isBlank(character) && (hasDash || (character != "=" && character != ":"))
        }
        rest = rest.dropFirst(word.count).drop {
            InputFile.isBlank($0) || (!hasDash && ($0 == "=" || $0 == ":"))
        }
        // A value may be joined to a one-letter option.
        let option = hasDash ? String(word) : word.count == 1 ? "-\(word)" : "--\(word)"
        return Line(number: number, option: option, value: value(at: rest))
    }

    /// A value in double quotes, with `\"`, `\\`, `\n`, `\r`, `\t` and `\v`, or the text up to the next
    /// blank.
    private static func value(at rest: Substring) -> String? {
        guard let first = rest.first else { return nil }
        guard first == "\"" else {
            let word = rest.prefix { !InputFile.isBlank($0) }
            return word.hasPrefix("#") ? nil : String(word)
        }
        var behind = rest.dropFirst()
        let controls = QuotedText.lineControls.merging(["v": "\u{B}"]) { $1 }
        return QuotedText.read(&behind, controls: controls).text
    }
}
