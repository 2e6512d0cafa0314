import Rondo
package import RondoTrace

/// Shows an experiment on a terminal: its question, the run as it happens, and the outcome.
package struct ExperimentView: Sendable {
    private static let widest = 110
    private let terminal: Terminal

    package init(terminal: Terminal) {
        self.terminal = terminal
    }

    private var width: Int { terminal.isTerminal ? min(terminal.size.columns, Self.widest) : 100 }

    /// `text` in lines that fit, each of which is tinted by itself.
    ///
    /// - Parameter first: Stands in the place of the first line's indent, and has as many columns.
    private func paragraph(
        _ text: String, indent: String = "  ", first: String? = nil, _ tint: Tint? = nil
    ) -> String {
        let lines = text.wrapped(width: min(width, 96) - indent.count)
        return lines.enumerated().map { place, line in
            let margin = place == 0 ? first ?? indent : indent
            let shown = tint.map { terminal.tinted(line, $0) } ?? line
            return margin + shown + "\n"
        }.joined()
    }

    /// Two blanks are printed before each line of a timeline.
    private var timelineWidth: Int { width - 2 }

    // MARK: Before

    package func begin(_ experiment: Experiment) {
        terminal.write(
            "\n" + paragraph(experiment.title, .strong)
                + paragraph("\(experiment.name) · \(experiment.rules.joined(separator: ", "))", .quiet) + "\n"
                + (experiment.background.isEmpty ? "" : paragraph(experiment.background) + "\n")
                + paragraph(experiment.question) + "\n")
    }

    /// Asks for a prediction, and waits for a line with its number.
    ///
    /// - Parameters:
    ///   - maySkip: Whether an empty line is an answer too.
    ///   - readLine: Returns the next line of input; nil at the end of the input.
    /// - Returns: The index of the choice; nil if the input ended first, or the reader only watches.
    package func ask(_ experiment: Experiment, maySkip: Bool, readLine: () -> String?) -> Int? {
        for (place, choice) in experiment.choices.enumerated() {
            terminal.write(paragraph(choice, indent: "       ", first: "    \(place + 1)  "))
        }
        let skip = maySkip ? ", Return to only watch" : ""
        // The answer stands on the last line, behind a blank.
        let prompt = "Your prediction (1–\(experiment.choices.count)\(skip)):".wrapped(width: width - 4)
        while true {
            terminal.write("\n" + prompt.map { "  " + $0 }.joined(separator: "\n") + " ")
            guard let line = readLine() else {
                terminal.write("\n")
                return nil
            }
            if maySkip, line.allSatisfy(\.isWhitespace) { return nil }
            if let number = Int(line.filter { !$0.isWhitespace }),
                experiment.choices.indices.contains(number - 1)
            {
                terminal.write("\n")
                return number - 1
            }
        }
    }

    // MARK: While it runs

    /// Draws the recording so far over the previous picture; nil if the cursor cannot be moved.
    package func live() -> (@Sendable (Recording, _ isWhole: Bool) -> Void)? {
        guard canMove else { return nil }
        let drawn = Shared(0)
        return { recording, isWhole in
            // While the recording grows, the scale stays the same for as long as possible.
            let seconds = isWhole ? nil : max(1, Double(recording.ended - recording.began) / 1e9)
            let lines = TextTimeline(
                recording, terminal: terminal, width: timelineWidth, seconds: seconds
            ).lines
            draw(lines, over: drawn.value)
            drawn.value = min(lines.count, room)
        }
    }

    private var canMove: Bool {
        terminal.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
            && terminal.size.columns >= 50
    }

    private var room: Int { max(4, terminal.size.rows - 2) }

    private func draw(_ lines: [String], over count: Int) {
        var text = count > 0 ? "\u{1B}[\(count)A\r" : ""
        for line in lines.prefix(room) { text += "  " + line + "\u{1B}[K\n" }
        // Clears the rest of a longer previous picture.
        terminal.write(text + "\u{1B}[J")
    }

    // MARK: After

    /// A line for each note of the plot, whose heights are the note's values over time.
    private func plotted(_ plot: Plot?, _ recording: Recording) -> String {
        guard let plot else { return "" }
        let lines = plot.lines(recording)
        let highest = lines.flatMap(\.points).map(\.value).max() ?? 0
        let longest = lines.flatMap(\.points).map(\.time).max() ?? 0
        guard highest > 0, longest > 0 else { return "" }
        let columns = max(10, width - 42)
        let names = min(22, max(8, width - 32))
        var text = "\n" + paragraph("\(plot.title), in \(plot.unit)", .strong)
        for line in lines {
            var heights = Array(repeating: 0.0, count: columns)
            for point in line.points {
                let column = min(columns - 1, Int(point.time / longest * Double(columns)))
                heights[column] = max(heights[column], point.value)
            }
            let marks = heights.map { heightMark($0, full: highest, usesUnicode: terminal.hasUnicode) }
            let peak = TextFormats.fixed(heights.max() ?? 0, digits: 1)
            text += "  \(line.name.padded(names)) \(String(marks)) at most \(peak)\n"
        }
        return text
    }

    /// - Parameter prediction: The index of the reader's prediction; nil if none was asked for.
    package func end(_ outcome: Outcome, prediction: Int?, showsCode: Bool) {
        let experiment = outcome.experiment
        var text = ""
        if !canMove {
            let lines = TextTimeline(outcome.recording, terminal: terminal, width: timelineWidth).lines
            text += lines.map { "  \($0)\n" }.joined()
        }
        text += plotted(experiment.plot, outcome.recording) + "\n"
        let happens = paragraph("What happens: \(experiment.choices[experiment.answer])")
        if let prediction {
            let isRight = prediction == experiment.answer
            text += paragraph(
                isRight ? "You were right." : "You said: \(experiment.choices[prediction])",
                isRight ? .good : .waiting)
            text += (isRight ? "" : happens) + "\n"
        } else {
            text += happens + "\n"
        }
        text += "  " + terminal.tinted("What was seen", .strong) + "\n"
        for check in outcome.verdict.checks {
            let mark = terminal.hasUnicode ? (check.holds ? "✓" : "✗") : check.holds ? "ok" : "NO"
            text += paragraph(
                check.expected, indent: String(repeating: " ", count: 3 + mark.count),
                first: "  " + terminal.tinted(mark, check.holds ? .good : .bad) + " ")
            text += paragraph(check.seen, indent: "      ", .quiet)
        }
        text += "\n  " + terminal.tinted("Why", .strong) + "\n" + paragraph(experiment.why)
        if showsCode {
            text += "\n  " + terminal.tinted("The code", .strong) + "\n"
            text += experiment.program.split(separator: "\n", omittingEmptySubsequences: false).map {
                "    \($0)\n"
            }.joined()
        }
        let isGood = outcome.verdict.isAsDocumented
        text += "\n  " + terminal.tinted(outcome.verdict.words, isGood ? .good : .bad) + "\n\n"
        terminal.write(text)
    }
}
