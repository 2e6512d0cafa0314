import Rondo
import RondoLab

/// Prints a line to standard error for each answer.
///
/// It never waits for its reader: a line that does not fit into a full pipe is dropped and counted.
final class RequestLog {
    struct Entry {
        var peer: String
        /// The request's first line, or a text in its place.
        var request: String
        /// Nil if there was no answer.
        var status: Int?
        var sent: Int
        /// True if the answer was not sent completely.
        var isCut: Bool
        var seconds: Double
    }

    private let terminal = Terminal.standardError
    private var leftOut = 0

    func write(_ entry: Entry) {
        var words = [Self.time(), entry.peer]
        if let status = entry.status {
            words.append(terminal.tinted(String(status), status < 400 ? .good : .bad))
        }
        words.append(TerminalText.harmless(entry.request))
        if entry.status != nil {
            let bytes = TextFormats.bytes(entry.sent)
            words.append(entry.isCut ? terminal.tinted("cut off after \(bytes)", .bad) : bytes)
            words.append(Self.duration(entry.seconds))
        }
        line(words.joined(separator: "  "))
    }

    private func line(_ text: String) {
        // A pipe that is ready accepts a page, which is more than a line has.
        var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else {
            leftOut += 1
            return
        }
        let gap = leftOut > 0 ? "(\(leftOut) lines were left out)\n" : ""
        leftOut = 0
        terminal.write(gap + text + "\n")
    }

    private static func duration(_ seconds: Double) -> String {
        seconds < 1
            ? "\(TextFormats.fixed(seconds * 1000, digits: 0)) ms"
            : "\(TextFormats.fixed(seconds, digits: 2)) s"
    }

    private static func time() -> String {
        var now = Foundation.time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        var text = [CChar](repeating: 0, count: 16)
        let count = strftime(&text, text.count, "%H:%M:%S", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
