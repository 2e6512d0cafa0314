import Rondo

/// A descriptor for text, and the features of the terminal behind it.
package struct Terminal: Sendable {
    package let descriptor: Int32
    package let isTerminal: Bool
    /// True for a terminal, unless `NO_COLOR` is set (https://no-color.org).
    package let hasColour: Bool
    /// True if block characters can be shown: the locale is a UTF-8 one.
    package let hasUnicode: Bool
    /// Stands for the size that the system reports; nil except in tests.
    private let fixedSize: (columns: Int, rows: Int)?

    package static let standardOutput = Terminal(descriptor: 1)
    package static let standardError = Terminal(descriptor: 2)

    package init(descriptor: Int32) {
        self.init(
            descriptor: descriptor, isTerminal: isatty(descriptor) == 1,
            environment: ProcessInfo.processInfo.environment)
    }

    /// - Parameter fixedSize: Columns and rows; nil asks the system.
    package init(
        descriptor: Int32, isTerminal: Bool, environment: [String: String],
        fixedSize: (columns: Int, rows: Int)? = nil
    ) {
        self.fixedSize = fixedSize
        self.descriptor = descriptor
        self.isTerminal = isTerminal
        let isDumb = environment["TERM"] == "dumb"
        hasColour = isTerminal && !isDumb && environment["NO_COLOR", default: ""].isEmpty
        hasUnicode = Self.isUTF8(environment)
    }

    /// The locale for characters is the first of these variables that is set and not empty, as in
    /// setlocale(3).
    static func isUTF8(_ environment: [String: String]) -> Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        let name = (locale ?? "").uppercased()
        return name.contains("UTF-8") || name.contains("UTF8")
    }

    /// Columns and rows. They are read at each call, because windows change; 80 by 24 if the system does not
    /// report them.
    package var size: (columns: Int, rows: Int) {
        if let fixedSize { return fixedSize }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    /// Writes all of `text` at once. Returns false if the reader has closed.
    @discardableResult
    package func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { writeAll(descriptor, UnsafeRawBufferPointer($0)) == 0 }
    }
}

/// Writes all of `bytes` to a blocking descriptor. Returns 0, or the errno.
package func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
    var rest = bytes[...]
    while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let count = write(descriptor, part.baseAddress, part.count)
        if count < 0 {
            let code = errno
            if code == EINTR { continue }
            return code
        }
        rest = rest.dropFirst(count)
    }
    return 0
}

/// The colours in use, named by their meaning.
package enum Tint: String, Sendable {
    case strong = "1"
    case quiet = "2"
    case good = "32"
    case waiting = "33"
    case bad = "31"
    case accent = "36"
}

extension Terminal {
    /// `text` in a colour; unchanged without colours.
    package func tinted(_ text: String, _ tint: Tint) -> String {
        hasColour ? "\u{1B}[\(tint.rawValue)m\(text)\u{1B}[0m" : text
    }
}
