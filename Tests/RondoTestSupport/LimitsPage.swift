internal import RondoCore

/// The article “Limits”, each section of which is compared with the constants that it lists, by tests of the target that can
/// see these.
package enum LimitsPage {
    /// A section, by its heading.
    package enum Section: String, CaseIterable {
        case responses = "Responses over HTTP/1.1"
        case content = "Content and its size"
        case load = "A load"
        case webSockets = "WebSockets"
        case storages = "Storages"
        case streams = "Streams, names and TLS"
        case ports = "Ports between processes"
        case server = "The server of the command"
    }

    private struct Row {
        let heading: String
        let name: String
        let value: String
    }

    /// The headings of the sections with rows, in order.
    package static func headings() throws -> [String] {
        try rows().reduce(into: []) { headings, row in
            if headings.last != row.heading { headings.append(row.heading) }
        }
    }

    /// Compares the rows of a section with `limits`.
    ///
    /// - Parameter uncompared: The reasons why rows are not among `limits`, by their names.
    /// - Returns: A sentence for each row that is missing, is in neither list, or has another value.
    package static func differences(
        in section: Section, from limits: [String: Int], uncompared: [String: String] = [:]
    ) throws -> [String] {
        let rows = try rows().filter { $0.heading == section.rawValue }
        let names = Set(rows.map(\.name))
        let missing = (Array(limits.keys) + Array(uncompared.keys)).filter { !names.contains($0) }
        let wrong = rows.compactMap { row -> String? in
            guard uncompared[row.name] == nil else { return nil }
            guard let limit = limits[row.name] else { return "\(row.name) is compared with nothing" }
            return limit == number(row.value) ? nil : "\(row.name) is \(limit), not \(row.value)"
        }
        return missing.sorted().map { "\($0) has no row" } + wrong
    }

    private static func rows() throws -> [Row] {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = root.appendingPathComponent("Sources/Rondo/Rondo.docc/EveryLimit.md")
        var (rows, heading): ([Row], String) = ([], "")
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("### ") { heading = String(line.dropFirst(4)) }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, cells[0].hasPrefix("`") else { continue }
            let name = cells[0].trimmingCharacters(in: CharacterSet(charactersIn: "`"))
            rows.append(Row(heading: heading, name: name, value: cells[1]))
        }
        return rows
    }

    /// The number in a cell such as “256 KiB” or “1,000”.
    private static func number(_ cell: String) -> Int? {
        let words = cell.split(separator: " ")
        let units = ["KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30]
        guard let first = words.first, let count = Int(first.filter { $0 != "," }) else { return nil }
        return words.count == 1 ? count : units[String(words[1])].map { count * $0 }
    }
}
