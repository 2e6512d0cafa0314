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
        style = silent ? .silent : canMove && size.columns >= 60 && size.rows >= 12 ? .live : .lines
    }

    mutating func begin(_ report: ScrollingReport) {
        bytesBefore = report.loads.map(\.received)
        guard style != .silent else { return }
        let title = "One file, loaded twice on one run loop, while somebody scrolls"
        terminal.write("\n  \(terminal.tinted(title, .strong))\n\n")
    }

    // MARK: While it runs

    /// Draws anew what is live.
    mutating func frame(_ report: ScrollingReport, _ strip: ActivityStrip, mode: RunLoop.Mode) {
        guard style == .live else { return }
        let width = min(terminal.size.columns, 100)
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
            let word =
                gained > 0
                ? "+" + TextFormats.bytes(gained) : load.isUnderWay ? "stands still" : "done"
            return "\(load.name) (\(load.scheduledIn.spokenName)) " + word.padded(13)
        }
        bytesBefore = report.loads.map(\.received)
        let time = TextFormats.fixed(elapsed, digits: 1).rightAligned(5)
        terminal.write("  \(time) s  \(mode.spokenName.padded(9)) \(parts.joined(separator: " "))\n")
    }

    // MARK: The end

    func end(_ report: ScrollingReport) {
        guard style != .silent else { return }
        let head = tableRow("bytes received in", ["default", "tracking", "in all", "time"])
        let rows = report.loads.map { load in
            tableRow(
                "\(load.name)  \(load.placement)",
                [
                    TextFormats.grouped(load.bytes(in: .default)),
                    TextFormats.grouped(load.bytes(in: .tracking)),
                    TextFormats.grouped(load.received),
                    load.seconds.map { TextFormats.fixed($0, digits: 1) + " s" } ?? "-",
                ])
        }
        let width = terminal.isTerminal ? min(terminal.size.columns, 100) : 100
        let sentence = wrapped(report.sentence, width: max(width - 4, 20))
            .map { report.isAsDocumented ? $0 : terminal.tinted($0, .bad) }
        let lines = [terminal.tinted(head, .quiet)] + rows + [""] + sentence
        terminal.write("\n" + lines.map { $0.isEmpty ? "\n" : "  " + $0 + "\n" }.joined() + "\n")
    }

    private func tableRow(_ name: String, _ cells: [String]) -> String {
        name.padded(20) + cells.map { $0.rightAligned(13) }.joined()
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
        let bar = TextBar(fraction: fraction, width: width - 53, usesUnicode: terminal.hasUnicode)
        let percent = "\(Int(fraction * 100)) %".rightAligned(6)
        return "  \(load.name)  \(load.placement.padded(18))"
            + terminal.tinted(bar.filled, load.scheduledIn == .common ? .good : .accent)
            + terminal.tinted(bar.empty, .quiet)
            + "\(percent) \(TextFormats.bytes(load.received).rightAligned(9))  "
            + doing(load, rate: strip.rate(ofLoad: index))
    }

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

/// Breaks `text` at blanks into lines of at most `width` columns.
private func wrapped(_ text: String, width: Int) -> [String] {
    var lines: [String] = [""]
    for word in text.split(separator: " ") {
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
