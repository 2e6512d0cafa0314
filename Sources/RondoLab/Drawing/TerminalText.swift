/// Makes text of a server, or of a recorded program, safe for a terminal.
package enum TerminalText {
    /// Replaces control characters, which can move the cursor and worse, by `\xNN`.
    ///
    /// - Parameter kept: Those that remain: line ends and tabs.
    package static func harmless(
        _ text: String, keeping kept: [Unicode.Scalar] = ["\r", "\n", "\t"]
    ) -> String {
        var harmless = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if kept.contains(scalar) || scalar.properties.generalCategory != .control {
                harmless.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16, uppercase: true)
                harmless.append(contentsOf: "\\x\(digits.count < 2 ? "0" : "")\(digits)".unicodeScalars)
            }
        }
        return String(harmless)
    }
}
