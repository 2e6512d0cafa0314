internal import RondoTrace

/// Values that an experiment noted, to be drawn over time.
package struct Plot: Sendable {
    let title: String
    let unit: String
    /// The number of noted units in one unit of the plot.
    let scale: Int
    /// The names of the notes, a line for each.
    let notes: [String]
}

extension Plot {
    private static let (width, height) = (720.0, 300.0)
    private static let (left, right, top, bottom) = (46.0, 150.0, 18.0, 34.0)

    /// The values of each note. Times are in milliseconds from the note's first value; the name is the text
    /// after the note's last comma.
    func lines(_ recording: Recording) -> [(name: String, points: [(time: Double, value: Double)])] {
        let evidence = Evidence(recording)
        return notes.map { name -> (name: String, points: [(time: Double, value: Double)]) in
            let found = evidence.notes(name)
            let points = found.map { note in
                (
                    time: Double(note.began - (found.first?.began ?? 0)) / 1e6,
                    value: max(0, Double(note.duration) / Double(scale))
                )
            }
            return (
                name.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) } ?? name,
                points
            )
        }
    }

    /// The drawing; empty if nothing was noted.
    func svg(_ recording: Recording) -> String {
        let lines = lines(recording)
        let longest = lines.flatMap(\.points).map(\.time).max() ?? 0
        let highest = lines.flatMap(\.points).map(\.value).max() ?? 0
        guard longest > 0, highest > 0 else { return "" }
        let plotWidth = Self.width - Self.left - Self.right
        let plotHeight = Self.height - Self.top - Self.bottom
        let x = { (time: Double) in Self.left + time / longest * plotWidth }
        let y = { (value: Double) in Self.top + plotHeight - value / highest * plotHeight }
        let text = { (value: Double) in TextFormats.fixed(value, digits: 1) }

        var svg = "<svg class=\"plot\" viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" "
        let peaks = lines.map { "\($0.name) \(text($0.points.map(\.value).max() ?? 0)) \(unit)" }
        svg +=
            "aria-label=\"\(HTML.escaped("\(title): \(peaks.joined(separator: ", "))"))\" font-size=\"12\">\n"
        for part in 0...4 {
            let value = highest * Double(part) / 4
            svg +=
                "<line x1=\"\(text(Self.left))\" x2=\"\(text(Self.left + plotWidth))\" y1=\"\(text(y(value)))\" "
                + "y2=\"\(text(y(value)))\" stroke=\"var(--line)\"/>"
            svg +=
                "<text x=\"\(text(Self.left - 6))\" y=\"\(text(y(value) + 4))\" text-anchor=\"end\" "
                + "fill=\"var(--quiet)\">\(TextFormats.fixed(value, digits: highest < 8 ? 1 : 0))</text>\n"
        }
        svg += "<text x=\"4\" y=\"12\" fill=\"var(--quiet)\">\(unit)</text>"
        svg +=
            "<text x=\"\(text(Self.left + plotWidth))\" y=\"\(text(Self.height - 10))\" text-anchor=\"end\" "
            + "fill=\"var(--quiet)\">\(Int(longest)) ms</text>\n"
        // A name stands at the end of its line, or beside it if another name is there.
        var taken: [Double] = []
        for (place, line) in lines.enumerated() where !line.points.isEmpty {
            let path = line.points.map { "\(text(x($0.time))),\(text(y($0.value)))" }.joined(separator: " ")
            let colour = "var(--mode\(place))"
            svg += "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2\"/>"
            var place = y(line.points.last?.value ?? 0)
            while let near = taken.first(where: { abs($0 - place) < 15 }) { place = near - 15 }
            taken.append(place)
            svg +=
                "<text x=\"\(text(Self.left + plotWidth + 8))\" y=\"\(text(place + 4))\" fill=\"\(colour)\" "
                + "font-weight=\"600\">\(HTML.escaped(line.name))</text>\n"
        }
        return "<h3>\(HTML.escaped(title))</h3>\n\(svg)</svg>\n"
    }
}
