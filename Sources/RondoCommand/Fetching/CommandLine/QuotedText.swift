/// Text in double quotes, in which a backslash takes the next character as it stands, or makes a letter a
/// control character.
enum QuotedText {
    static let lineControls: [Character: Character] = ["n": "\n", "r": "\r", "t": "\t"]

    /// Takes the text up to the closing quote, and the quote.
    ///
    /// - Parameters:
    ///   - rest: The text behind the opening quote.
    ///   - controls: Control characters, and the letters that stand for them.
    static func read(
        _ rest: inout Substring, controls: [Character: Character]
    ) -> (text: String, isClosed: Bool) {
        var text = ""
        while let character = rest.popFirst() {
            if character == "\"" { return (text, true) }
            guard character == "\\" else {
                text.append(character)
                continue
            }
            guard let next = rest.popFirst() else { break }
            text.append(controls[next] ?? next)
        }
        return (text, false)
    }
}
