/// Text in double quotes, in which a backslash takes the next byte as it stands, or makes a letter a control
/// character.
enum QuotedText {
    static let lineControls: [UInt8: UInt8] = [
        UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"),
        UInt8(ascii: "t"): UInt8(ascii: "\t"),
    ]

    /// Takes the text up to the closing quote, and the quote.
    ///
    /// - Parameters:
    ///   - rest: The text behind the opening quote.
    ///   - controls: Control characters, and the letters that stand for them.
    static func read(
        _ rest: inout ArraySlice<UInt8>, controls: [UInt8: UInt8]
    ) -> (text: [UInt8], isClosed: Bool) {
        var text: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return (text, true) }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                continue
            }
            guard let next = rest.popFirst() else { break }
            text.append(controls[next] ?? next)
        }
        return (text, false)
    }
}
