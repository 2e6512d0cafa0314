import Rondo

/// Draws the scrolling experiment: live on a terminal that can move its cursor, else a line for each span.
struct ScrollingView {
    enum Style {
        case live, lines, silent
    }

    private let terminal: Terminal
    private let style: Style
    private let rate: Double
    private var drawnLines = 0
    private var bytesBefore: [Int] = []

    /// - Parameter rate: what the server sends a second, which is a full column of the picture.
    init(terminal: Terminal, silent: Bool, rate: Double) {
        self.terminal = terminal
        self.rate = rate
        let size = terminal.size
        let canMove = terminal.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        let hasRoom = size.columns >= Self.narrowest && size.rows >= 12
        style = silent ? .silent : canMove && hasRoom ? .live : .lines
    }

    /// Columns to draw in: the window's, though no wider than what is read with ease.
    private var width: Int { terminal.isTerminal ? min(terminal.size.columns, Self.widest) : Self.widest }

    private static let widest = 100
    /// Fewer columns than this, and the lines of a frame would not fit: nothing is live.
    private static let narrowest = 46
    /// Fewer columns than this, and labels and columns are the short ones.
    private static let roomy = 80

    private var isNarrow: Bool { width < Self.roomy }

    mutating func begin(_ report: ScrollingReport) {
        bytesBefore = report.loads.map(\.received)
        guard style != .silent else { return }
        let title = "One file, loaded twice on one run loop, while somebody scrolls"
        let lines = wrapped(title, width: max(width - 4, 20))
            .map { "  " + terminal.tinted($0, .strong) + "\n" }
        terminal.write("\n" + lines.joined() + "\n")
    }

    // MARK: While it runs

    /// Draws anew what is live.
    mutating func frame(_ report: ScrollingReport, _ strip: ActivityStrip, mode: RunLoop.Mode) {
        guard style == .live else { return }
        let width = width
        var lines = [modeLine(mode)]
        lines += report.loads.indices.map { loadLine($0, report, strip, width: width) }
        lines.append("")
        lines += stripLines(report, strip, width: width)
        draw(lines)
    }

    /// Notes the end of a span in `mode`, where nothing is live.
    mutating func spanEnded(_ report: ScrollingReport, mode: RunLoop.Mode, elapsed: Double) {
        guard style == .lines else { return }
        let parts = report.loads.indices.map { index in
            let load = report.loads[index]
            let gained = load.received - bytesBefore[index]
            let idle = !load.isUnderWay ? "done" : isNarrow ? "nothing" : "stands still"
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
        let sentence = wrapped(report.sentence, width: max(width - 4, 20))
            .map { report.isAsDocumented ? $0 : terminal.tinted($0, .bad) }
        let lines = head.map { terminal.tinted($0, .quiet) } + rows + [""] + sentence
        terminal.write("\n" + lines.map { $0.isEmpty ? "\n" : "  " + $0 + "\n" }.joined() + "\n")
    }

    /// Every digit where there is room for it.
    private func amount(_ bytes: Int) -> String {
        isNarrow ? TextFormats.bytes(bytes) : TextFormats.grouped(bytes)
    }

    /// 72 columns, or 42 where the window is narrow.
    private func tableRow(_ name: String, _ cells: [String]) -> String {
        let (first, other) = isNarrow ? (2, 10) : (20, 13)
        return name.padded(first) + cells.map { $0.rightAligned(other) }.joined()
    }

    // MARK: Lines of a frame

    private func modeLine(_ mode: RunLoop.Mode) -> String {
        let name = terminal.tinted(mode.spokenName.padded(9), mode == .tracking ? .waiting : .good)
        let note = mode == .tracking ? "(somebody scrolls)" : ""
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

    /// The columns of "stands still", which the bar leaves free.
    private static let longestDoing = 12

    /// What a load is doing, in a word or two.
    private func doing(_ load: ScrollingLoad, rate: Double) -> String {
        if load.failure != nil { return terminal.tinted("failed", .bad) }
        if !load.isUnderWay { return terminal.tinted("done", .good) }
        if rate > 0 { return terminal.tinted(TextFormats.bytes(rate) + "/s", .accent) }
        return terminal.tinted("stands still", .waiting)
    }

    private func stripLines(_ report: ScrollingReport, _ strip: ActivityStrip, width: Int) -> [String] {
        let slots = Array(strip.slots.suffix(max(width - 10, 10)))
        let (thin, thick) = terminal.hasUnicode ? ("─", "━") : ("-", "=")
        // Whole stretches are tinted, not single columns, to keep what is written short.
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

    /// Writes `lines` over those drawn before, in one write so that nothing flickers.
    private mutating func draw(_ lines: [String]) {
        var text = drawnLines > 0 ? "\u{1B}[\(drawnLines)A\r" : ""
        for line in lines { text += line + "\u{1B}[K\n" }
        drawnLines = lines.count
        terminal.write(text)
    }
}
