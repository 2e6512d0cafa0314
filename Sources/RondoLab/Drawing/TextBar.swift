/// A horizontal bar of `width` columns, of which `fraction` is filled, to an eighth of a column.
package struct TextBar: Sendable {
    package var fraction: Double
    package var width: Int
    package var usesUnicode: Bool

    package init(fraction: Double, width: Int, usesUnicode: Bool) {
        self.fraction = fraction.isFinite ? min(max(fraction, 0), 1) : 0
        self.width = max(width, 0)
        self.usesUnicode = usesUnicode
    }

    private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

    /// The filled part; `empty` completes it to `width` columns.
    package var filled: String {
        guard usesUnicode else { return String(repeating: "#", count: Int(fraction * Double(width))) }
        let (whole, part) = Int(fraction * Double(width) * 8).quotientAndRemainder(dividingBy: 8)
        return String(repeating: "█", count: whole) + Self.eighths[part]
    }

    package var empty: String {
        String(repeating: usesUnicode ? "░" : ".", count: width - filled.count)
    }
}

/// One column whose height shows `value`; it is filled at `full`.
package func heightMark(_ value: Double, full: Double, usesUnicode: Bool) -> Character {
    let marks: [Character] =
        usesUnicode
        ? [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        : [" ", ".", ":", "-", "=", "+", "*", "%", "#"]
    guard value > 0, full > 0 else { return marks[0] }
    let step = Int((value / full * 8).rounded())
    return marks[min(max(step, 1), 8)]
}
