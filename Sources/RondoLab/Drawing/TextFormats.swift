import Rondo

/// Formats numbers for people. Every result is plain text, independent of the locale.
package enum TextFormats {
    /// A number of bytes with a decimal unit and about three digits: `999 B`, `1.23 kB`, `12.3 MB`, `123 GB`.
    package static func bytes(_ count: Double) -> String {
        let units = ["B", "kB", "MB", "GB", "TB", "PB"]
        var value = max(count, 0)
        var unit = 0
        // 999.5 would be rounded to 1000, so it belongs to the next unit.
        while value >= 999.5, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        let digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
        return fixed(value, digits: digits) + " " + units[unit]
    }

    package static func bytes(_ count: Int) -> String {
        bytes(Double(count))
    }

    /// Minutes and seconds, and hours if there are any: `0:07`, `12:34`, `1:02:03`.
    package static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "--:--" }
        let whole = Int(max(seconds, 0).rounded(.up))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        return hours > 0
            ? "\(hours):\(twoDigits(minutes)):\(twoDigits(rest))"
            : "\(minutes):\(twoDigits(rest))"
    }

    /// All digits, in groups of three: `3,100,000`.
    package static func grouped(_ number: Int) -> String {
        var text = String(number.magnitude)
        var end = text.endIndex
        while text.distance(from: text.startIndex, to: end) > 3 {
            end = text.index(end, offsetBy: -3)
            text.insert(",", at: end)
        }
        return number < 0 ? "-" + text : text
    }

    package static func fixed(_ value: Double, digits: Int) -> String {
        String(format: "%.\(digits)f", value)
    }

    private static func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : String(number)
    }
}

extension String {
    /// The text padded with blanks on the right, or cut, to `width` columns.
    package func padded(_ width: Int) -> String {
        count >= width ? String(prefix(width)) : self + String(repeating: " ", count: width - count)
    }

    /// The text padded with blanks on the left to `width` columns.
    package func rightAligned(_ width: Int) -> String {
        count >= width ? self : String(repeating: " ", count: width - count) + self
    }

    /// The text broken at blanks into lines of at most `width` columns. A longer word is a line by itself.
    package func wrapped(width: Int) -> [String] {
        var lines: [String] = [""]
        for word in split(separator: " ") {
            if lines[lines.count - 1].isEmpty {
                lines[lines.count - 1] = String(word)
            } else if lines[lines.count - 1].count + 1 + word.count <= width {
                lines[lines.count - 1] += " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
