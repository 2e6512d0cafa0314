import Rondo

/// Draws the scrolling experiment: live on a terminal that can move its cursor, otherwise a line for each
/// span.
struct ScrollingView {
    enum Style {
        case live, lines, silent
    }

    private let terminal: Terminal
    private let style: Style
    private let rate: Double
    private var drawnLines = 0
    private var bytesBefore: [Int] = []

    /// - Parameter rate: The bytes a second that the server sends; a full column of the picture stands for
    ///   them.
    init(terminal: Terminal, silent: Bool, rate: Double) {
        self.terminal = terminal
        self.rate = rate
        let size = terminal.size
        let canMove = terminal.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        let hasRoom = size.columns >= Self.narrowest && size.rows >= 12
        style = silent ? .silent : canMove && hasRoom ? .live : .lines
    }

    /// The columns to draw in: those of the window, but no more than are easy to read.
    private var width: Int { terminal.isTerminal ? min(terminal.size.columns, Self.widest) : Self.widest }

    private static let widest = 100
    /// With fewer columns the lines of a frame do not fit, and nothing is drawn live.
    private static let narrowest = 46
    /// With fewer columns labels and columns are short.
    private static let roomy = 80

    private var isNarrow: Bool { width < Self.roomy }

    mutating func begin(_ report: ScrollingReport) {
        bytesBefore = report.loads.map(\.received)
        guard style != .silent else { return }
        let title = "One file, loaded twice on one run loop, while the user scrolls"
        let lines = title.wrapped(width: width - 4)
            .map { "  " + terminal.tinted($0, .strong) + "\n" }
        terminal.write("\n" + lines.joined() + "\n")
    }

    // MARK: While it runs

    /// Redraws the live picture.
    mutating func frame(_ report: ScrollingReport, _ strip: ActivityStrip, mode: RunLoop.Mode) {
        guard style == .live else { return }
        let width = width
        var lines = [modeLine(mode)]
        lines += report.loads.indices.map { loadLine($0, report, strip, width: width) }
        lines.append("")
        lines += stripLines(report, strip, width: width)
        draw(lines)
    }

    /// Prints the end of a span in `mode`, unless the picture is live.
    mutating func spanEnded(_ report: ScrollingReport, mode: RunLoop.Mode, elapsed: Double) {
        guard style == .lines else { return }
        let parts = report.loads.indices.map { index in
            let load = report.loads[index]
            let gained = load.received - bytesBefore[index]
            let idle = !load.isInProgress ? "done" : isNarrow ? "nothing" : "stands still"
            let word = gained > 0 ? "+" + TextFormats.bytes(gained) : idle
            let name = isNarrow ? load.name : "\(load.name) (\(load.scheduledIn.spokenName))"
            return name + " " + (index == report.loads.count - 1 ? word : word.padded(isNarrow ? 9 : 13))
        }
        bytesBefore = report.loads.map(\.received)
        let time = TextFormats.fixed(elapsed, digits: 1).rightAligned(5)
        terminal.write("  \(time) s  \(mode.spokenName.padded(9)) \(parts.joined(separator: " "))\n")
    }

    // MARK: The end

    func end(_ report: ScrollingReport) {
        guard style != .silent else { return }
        let columns = ["default", "tracking", "in all", "time"]
        let subject = "bytes received in"
        let head = isNarrow ? [subject, tableRow("", columns)] : [tableRow(subject, columns)]
        let rows = report.loads.map { load in
            tableRow(
                isNarrow ? load.name : "\(load.name)  \(load.placement)",
                [
                    amount(load.bytes(in: .default)), amount(load.bytes(in: .tracking)),
                    amount(load.received),
                    load.seconds.map { TextFormats.fixed($0, digits: 1) + " s" } ?? "-",
                ])
        }
        let sentence = report.sentence.wrapped(width: width - 4)
            .map { report.isAsDocumented ? $0 : terminal.tinted($0, .bad) }
        let lines = head.map { terminal.tinted($0, .quiet) } + rows + [""] + sentence
        terminal.write("\n" + lines.map { $0.isEmpty ? "\n" : "  " + $0 + "\n" }.joined() + "\n")
    }

    /// All digits if there is room, otherwise a rounded number with a unit.
    private func amount(_ bytes: Int) -> String {
        isNarrow ? TextFormats.bytes(bytes) : TextFormats.grouped(bytes)
    }

    /// A row of 72 columns, or 42 in a narrow window.
    private func tableRow(_ name: String, _ cells: [String]) -> String {
        let (first, other) = isNarrow ? (2, 10) : (20, 13)
        return name.padded(first) + cells.map { $0.rightAligned(other) }.joined()
    }

    // MARK: Lines of a frame

    private func modeLine(_ mode: RunLoop.Mode) -> String {
        let name = terminal.tinted(mode.spokenName.padded(9), mode == .tracking ? .waiting : .good)
        let note = mode == .tracking ? "(the user scrolls)" : ""
        return "  the loop runs in " + name + note
    }

    private func loadLine(
        _ index: Int, _ report: ScrollingReport, _ strip: ActivityStrip, width: Int
    ) -> String {
        let load = report.loads[index]
        let fraction = report.size > 0 ? Double(load.received) / Double(report.size) : 0
        let label = isNarrow ? load.scheduledIn.spokenName.padded(8) : load.placement.padded(18)
        var figures = "\(Int(fraction * 100)) %".rightAligned(6)
        if !isNarrow { figures += " " + TextFormats.bytes(load.received).rightAligned(9) }
        let start = "  \(load.name)  \(label)"
        let rest = start.count + figures.count + 2 + Self.longestDoing
        let bar = TextBar(
            fraction: fraction, width: max(8, width - rest), usesUnicode: terminal.hasUnicode)
        return start
            + terminal.tinted(bar.filled, load.scheduledIn == .common ? .good : .accent)
            + terminal.tinted(bar.empty, .quiet)
            + figures + "  " + doing(load, rate: strip.rate(ofLoad: index))
    }

    /// The length of "stands still"; the bar leaves these columns free.
    private static let longestDoing = 12

    /// The state of a load, in one or two words.
    private func doing(_ load: ScrollingLoad, rate: Double) -> String {
        if load.failure != nil { return terminal.tinted("failed", .bad) }
        if !load.isInProgress { return terminal.tinted("done", .good) }
        if rate > 0 { return terminal.tinted(TextFormats.bytes(rate) + "/s", .accent) }
        return terminal.tinted("stands still", .waiting)
    }

    private func stripLines(_ report: ScrollingReport, _ strip: ActivityStrip, width: Int) -> [String] {
        let slots = Array(strip.slots.suffix(max(width - 10, 10)))
        let (thin, thick) = terminal.hasUnicode ? ("─", "━") : ("-", "=")
        // Whole stretches are tinted, not single columns, to keep the output short.
        var modes = ""
        var rest = slots[...]
        while let first = rest.first {
            let stretch = rest.prefix { $0.mode == first.mode }
            rest = rest.dropFirst(stretch.count)
            let isTracking = first.mode == .tracking
            let line = String(repeating: isTracking ? thick : thin, count: stretch.count)
            modes += isTracking ? terminal.tinted(line, .waiting) : line
        }
        let full = rate * ActivityStrip.slotLength
        let rows = report.loads.indices.map { index in
            let marks = slots.map {
                heightMark(Double($0.bytes[index]), full: full, usesUnicode: terminal.hasUnicode)
            }
            return "  \(report.loads[index].name)     \(String(marks))"
        }
        let key = "\(thin) default  \(terminal.tinted("\(thick) tracking", .waiting))  a column is 0.1 s"
        return ["  mode  " + modes] + rows + ["  " + key]
    }

    // MARK: Cursor

    /// Draws `lines` over those drawn before, in one write so that the picture does not flicker.
    private mutating func draw(_ lines: [String]) {
        var text = drawnLines > 0 ? "\u{1B}[\(drawnLines)A\r" : ""
        for line in lines { text += line + "\u{1B}[K\n" }
        drawnLines = lines.count
        terminal.write(text)
    }
}
