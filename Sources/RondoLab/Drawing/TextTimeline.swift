import Rondo
package import RondoTrace

/// A recording as lines of text: for each loop its modes, then a line for each object that was called or
/// waited.
///
///     run loop of lab
///       mode       ddddddddddttttttttttdddddd
///       load       ▪▪▪▪▪ ▪▪▪▒▒▒▒▒▒▒▒▒▒▪▪▪▪▪▪
package struct TextTimeline {
    private struct Lane {
        var title: String
        var cells: [Cell]
    }

    private enum Cell: Equatable {
        case empty
        /// The loop runs in the mode at this index of the tables, asleep or not.
        case mode(UInt16)
        case call(UInt16)
        case held
        case note
    }

    private enum Limits {
        static let loops = 50
        static let lanes = 14
        static let title = 26
    }

    private let recording: Recording
    private let terminal: Terminal
    private let width: Int
    /// The columns of a lane's title, and those of its cells.
    private let titleWidth: Int
    private let columns: Int
    private let span: Double
    /// By index in the tables.
    private let letters: [UInt16: Character]

    /// - Parameters:
    ///   - width: In columns.
    ///   - seconds: The time that the width stands for; nil means the whole recording.
    package init(_ recording: Recording, terminal: Terminal, width: Int, seconds: Double? = nil) {
        self.recording = recording
        self.terminal = terminal
        self.width = width
        titleWidth = min(Limits.title, max(10, width - 14))
        columns = max(10, width - titleWidth - 4)
        let recorded = Double(recording.ended - recording.began) / 1e9
        span = max(1e-6, seconds ?? recorded)
        letters = Self.letters(of: recording)
    }

    /// A unique letter for each mode, for terminals without colour: a letter of the name, or else a digit.
    private static func letters(of recording: Recording) -> [UInt16: Character] {
        var letters: [UInt16: Character] = [:]
        var free = Set("abcdefghijklmnopqrstuvwxyz0123456789")
        for mode in Set(recording.activations.map(\.mode)).sorted() {
            let name = recording.modeName(TraceRecord(kind: .entry, began: 0, mode: mode)).lowercased()
            guard let letter = name.first(where: free.contains) ?? free.sorted().first else { break }
            letters[mode] = letter
            free.remove(letter)
        }
        return letters
    }

    package var lines: [String] {
        var lines: [String] = []
        // Grouped once and not for each loop: there may be thousands of loops.
        let activations = Dictionary(grouping: recording.activations, by: \.loop)
        let records = Dictionary(grouping: recording.records, by: \.loop)
        let notes = Dictionary(grouping: recording.records.lazy.filter { $0.kind == .mark }, by: \.thread)
        let loops = recording.tables.loops.indices.dropFirst()
        for loop in loops.prefix(Limits.loops) {
            let title = Self.shown("run loop of \(recording.loopName(UInt16(loop)))")
            lines.append(terminal.tinted(String(title.prefix(width)), .strong))
            let notes = notes[recording.tables.loops[loop].thread] ?? []
            let lanes = lanes(activations[UInt16(loop)] ?? [], records[UInt16(loop)] ?? [], notes)
            for lane in lanes.prefix(Limits.lanes) { lines.append(line(lane)) }
            if lanes.count > Limits.lanes { lines.append("  … and \(lanes.count - Limits.lanes) more") }
        }
        if loops.count > Limits.loops {
            lines.append("… and \(loops.count - Limits.loops) other run loops")
        }
        return lines + [axis] + key
    }

    // MARK: Lanes

    private func column(_ time: Int64) -> Int {
        Int(Double(time - recording.began) / 1e9 / span * Double(columns))
    }

    private func fill(_ lane: inout Lane, from: Int64, to: Int64, with cell: Cell) {
        let first = max(0, column(from))
        guard first < columns else { return }
        for place in first...max(first, min(columns - 1, column(to))) { lane.cells[place] = cell }
    }

    /// The lanes of one loop; `notes` are those of its thread.
    private func lanes(
        _ activations: [Recording.Activation], _ records: [TraceRecord], _ notes: [TraceRecord]
    ) -> [Lane] {
        let empty = Array(repeating: Cell.empty, count: columns)
        var modes = Lane(title: "mode", cells: empty)
        // A nested run is drawn over the run around it.
        for activation in activations {
            fill(&modes, from: activation.began, to: activation.ended, with: .mode(activation.mode))
        }
        var calls: [Lane] = []
        var places: [String: Int] = [:]
        for record in records {
            guard record.kind.isCallOut || record.kind == .heldBack else { continue }
            let kind =
                record.kind == .heldBack ? TraceRecord.Kind(rawValue: record.detail) ?? .mark : record.kind
            // Calls to a delegate share the line of the source that made them, if both have the same name.
            let label = recording.label(record)
            let title = label.isEmpty ? Self.title(ofUnlabelled: kind) : label
            let place = places[title] ?? calls.count
            if place == calls.count {
                places[title] = place
                // A lane beyond the limit is only counted and needs no cells.
                calls.append(Lane(title: title, cells: place < Limits.lanes ? empty : []))
            }
            guard place < Limits.lanes else { continue }
            fill(
                &calls[place], from: record.began, to: record.ended,
                with: record.kind == .heldBack ? .held : .call(record.mode))
        }
        guard !notes.isEmpty else { return [modes] + calls }
        var noted = Lane(title: "notes", cells: empty)
        for note in notes { fill(&noted, from: note.began, to: note.began, with: .note) }
        return [modes, noted] + calls
    }

    /// The title for objects without a label: their kind, and for blocks their origin.
    private static func title(ofUnlabelled kind: TraceRecord.Kind) -> String {
        switch kind {
        case .block: "performed blocks"
        case .mainQueue: kind.word
        default: "\(kind.word) without a label"
        }
    }

    // MARK: Text

    private func line(_ lane: Lane) -> String {
        var text = "  " + Self.shown(lane.title).padded(titleWidth) + " "
        var rest = lane.cells[...]
        // Whole stretches are tinted, not single columns, to keep the output short.
        while let first = rest.first {
            let stretch = rest.prefix { $0 == first }
            rest = rest.dropFirst(stretch.count)
            text += drawn(first, count: stretch.count)
        }
        return text
    }

    private func drawn(_ cell: Cell, count: Int) -> String {
        let unicode = terminal.hasUnicode
        switch cell {
        case .empty: return String(repeating: " ", count: count)
        case .mode(let mode):
            let name = name(ofMode: mode)
            guard terminal.hasColour && unicode else {
                return terminal.tinted(String(repeating: letter(of: mode), count: count), tint(name))
            }
            // The name is written where there is room: there are fewer colours than modes.
            let bar = count >= name.count + 4 ? "━ \(name) " : ""
            return terminal.tinted(bar + String(repeating: "━", count: count - bar.count), tint(name))
        case .call(let mode):
            return terminal.tinted(
                String(repeating: unicode ? "▪" : "#", count: count), tint(name(ofMode: mode)))
        case .note:
            return String(repeating: unicode ? "│" : "|", count: count)
        case .held:
            return terminal.tinted(String(repeating: unicode ? "▒" : "~", count: count), .bad)
        }
    }

    private func letter(of mode: UInt16) -> Character { letters[mode] ?? "?" }

    private func name(ofMode mode: UInt16) -> String {
        Self.shown(recording.modeName(TraceRecord(kind: .entry, began: 0, mode: mode)))
    }

    /// Names come from the program, and labels from its URLs.
    private static func shown(_ name: String) -> String { TerminalText.harmless(name, keeping: []) }

    private func tint(_ mode: String) -> Tint {
        mode == "default" ? .accent : mode == "tracking" ? .waiting : .good
    }

    private var axis: String {
        let end =
            span < 1
            ? "\(TextFormats.fixed(span * 1000, digits: 0)) ms" : "\(TextFormats.fixed(span, digits: 1)) s"
        let line = "0" + String(repeating: " ", count: max(1, columns - 1 - end.count)) + end
        return terminal.tinted("  " + "".padded(titleWidth) + " " + line, .quiet)
    }

    /// The marks and their meanings, in as many lines as the width asks for.
    private var key: [String] {
        let unicode = terminal.hasUnicode
        // Only modes that ran: the tables contain the common name too.
        let ran = Set(recording.activations.map(\.mode))
        var items = ran.sorted().map { mode -> (text: String, tint: Tint?) in
            let name = name(ofMode: mode)
            let mark = terminal.hasColour && unicode ? "━" : letter(of: mode)
            return (text: String("\(mark) \(name)".prefix(max(10, width - 2))), tint: tint(name))
        }
        let marks = [
            unicode ? "▪ called" : "# called", unicode ? "│ noted" : "| noted",
            unicode ? "▒ ready, not deliverable" : "~ ready, not deliverable",
        ]
        items += marks.map { (text: $0, tint: Tint?.none) }
        var lines: [String] = []
        var end = 0
        for item in items {
            let shown = item.tint.map { terminal.tinted(item.text, $0) } ?? item.text
            if lines.isEmpty || end + 2 + item.text.count > width {
                lines.append("  " + shown)
                end = 2 + item.text.count
            } else {
                lines[lines.count - 1] += "  " + shown
                end += 2 + item.text.count
            }
        }
        return lines
    }
}
