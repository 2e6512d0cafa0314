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
        /// False if bytes of the option or its value were replaced.
        var isUTF8 = true
    }

    /// The lines that have an option.
    static func lines(in file: Data) -> [Line] {
        InputFile.lines(of: file).enumerated().compactMap { line($1, number: $0 + 1) }
    }

    private static func line(_ bytes: ArraySlice<UInt8>, number: Int) -> Line? {
        var rest = bytes.drop(while: InputFile.isBlank)
        guard let first = rest.first, first != UInt8(ascii: "#") else { return nil }
        let hasDash = first == UInt8(ascii: "-")
        let isSign = { (byte: UInt8) in
            !hasDash && (byte == UInt8(ascii: "=") || byte == UInt8(ascii: ":"))
        }
        let word = rest.prefix { !InputFile.isBlank($0) && !isSign($0) }
        rest = rest[word.endIndex...].drop { InputFile.isBlank($0) || isSign($0) }
        let name = String(decoding: word, as: UTF8.self)
        let value = Self.value(at: rest)
        // A value may be joined to a one-letter option.
        return Line(
            number: number, option: hasDash ? name : name.count == 1 ? "-\(name)" : "--\(name)",
            value: value.map { String(decoding: $0, as: UTF8.self) },
            isUTF8: [Array(word), value ?? []].allSatisfy { String(validating: $0, as: UTF8.self) != nil })
    }

    /// A value in double quotes, with `\"`, `\\`, `\n`, `\r`, `\t` and `\v`, or the text up to the next
    /// blank.
    private static func value(at rest: ArraySlice<UInt8>) -> [UInt8]? {
        guard let first = rest.first else { return nil }
        guard first == UInt8(ascii: "\"") else {
            return first == UInt8(ascii: "#") ? nil : Array(rest.prefix { !InputFile.isBlank($0) })
        }
        var behind = rest.dropFirst()
        let controls = QuotedText.lineControls.merging([UInt8(ascii: "v"): 0x0B]) { $1 }
        return QuotedText.read(&behind, controls: controls).text
    }
}
