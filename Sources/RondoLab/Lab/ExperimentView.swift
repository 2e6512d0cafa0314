import Rondo
package import RondoTrace

/// An experiment on a terminal: its question, the run as it happens, and what came of it.
package struct ExperimentView: Sendable {
    private static let widest = 110
    private let terminal: Terminal

    package init(terminal: Terminal) {
        self.terminal = terminal
    }

    private var width: Int { terminal.isTerminal ? min(terminal.size.columns, Self.widest) : 100 }

    private func paragraph(_ text: String, indent: String = "  ") -> String {
        wrapped(text, width: max(30, min(width, 96) - indent.count)).map { indent + $0 + "\n" }.joined()
    }

    // MARK: Before

    package func begin(_ experiment: Experiment) {
        terminal.write(
            "\n" + "  " + terminal.tinted(experiment.title, .strong) + "\n"
                + terminal.tinted(
                    "  \(experiment.name) · \(experiment.rules.joined(separator: ", "))", .quiet) + "\n\n"
                + (experiment.background.isEmpty ? "" : paragraph(experiment.background) + "\n")
                + paragraph(experiment.question) + "\n")
    }

    /// Asks for a prediction, and waits for a line with its number.
    ///
    /// - Parameter readLine: The next line that was typed; nil at the end of the input.
    /// - Returns: The place of the choice; nil if the input ended first.
    package func ask(_ experiment: Experiment, readLine: () -> String?) -> Int? {
        for (place, choice) in experiment.choices.enumerated() {
            terminal.write("    \(place + 1)  \(choice)\n")
        }
        while true {
            terminal.write("\n  Your prediction (1–\(experiment.choices.count)): ")
            guard let line = readLine() else {
                terminal.write("\n")
                return nil
            }
            if let number = Int(line.filter { !$0.isWhitespace }),
                experiment.choices.indices.contains(number - 1)
            {
                terminal.write("\n")
                return number - 1
            }
        }
    }

    // MARK: While it runs

    /// Draws what was recorded so far, over what was drawn before; does nothing where the cursor cannot be moved.
    package func live() -> (@Sendable (Recording, _ isWhole: Bool) -> Void)? {
        guard canMove else { return nil }
        let drawn = Shared(0)
        return { recording, isWhole in
            // While it grows the scale stays, as long as it can.
            let seconds = isWhole ? nil : max(1, Double(recording.ended - recording.began) / 1e9)
            let lines = TextTimeline(recording, terminal: terminal, width: width, seconds: seconds).lines
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
        // What is left of a longer picture goes.
        terminal.write(text + "\u{1B}[J")
    }

    // MARK: After

    /// - Parameter prediction: The choice that was made before; nil if none was asked for.
    package func end(_ outcome: Outcome, prediction: Int?, showsCode: Bool) {
        let experiment = outcome.experiment
        var text = ""
        if !canMove {
            let lines = TextTimeline(outcome.recording, terminal: terminal, width: width).lines
            text += lines.map { "  \($0)\n" }.joined()
        }
        text += "\n"
        if let prediction {
            let isRight = prediction == experiment.answer
            text +=
                "  "
                + terminal.tinted(
                    isRight ? "You were right." : "You said: \(experiment.choices[prediction])",
                    isRight ? .good : .waiting)
            text += isRight ? "\n" : "\n  What happens: \(experiment.choices[experiment.answer])\n"
            text += "\n"
        }
        text += "  " + terminal.tinted("What was seen", .strong) + "\n"
        for check in outcome.verdict.checks {
            let mark = terminal.hasUnicode ? (check.holds ? "✓" : "✗") : check.holds ? "ok" : "NO"
            text += "  " + terminal.tinted(mark, check.holds ? .good : .bad) + " \(check.expected)\n"
            text += wrapped(check.seen, width: max(30, min(width, 96) - 6)).map {
                "      " + terminal.tinted($0, .quiet) + "\n"
            }.joined()
        }
        text += "\n  " + terminal.tinted("Why", .strong) + "\n" + paragraph(experiment.why)
        if showsCode {
            text += "\n  " + terminal.tinted("The code", .strong) + "\n"
            text += experiment.code.split(separator: "\n", omittingEmptySubsequences: false).map {
                "    \($0)\n"
            }.joined()
        }
        let isGood = outcome.verdict.isAsDocumented
        text += "\n  " + terminal.tinted(outcome.verdict.words, isGood ? .good : .bad) + "\n\n"
        terminal.write(text)
    }
}
