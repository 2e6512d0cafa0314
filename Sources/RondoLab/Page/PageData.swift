import Rondo
package import RondoTrace

// The recording in the form that the page's script reads: JSON with a column for each field, and times in
// nanoseconds, each as the difference from the one before. 100,000 events take about 3 MB.

extension Recording {
    /// JSON that is safe inside a script element.
    package var pageData: String {
        var text = "{\"length\":\(ended - began),\"dropped\":\(dropped)"
        let loops = tables.loops.indices.map {
            "{\"name\":\(quoted(loopName(UInt16($0)))),\"thread\":\(tables.loops[$0].thread)}"
        }
        text += ",\"loops\":[\(loops.joined(separator: ","))]"
        let threads = tables.threads.indices.map { quoted(threadName(UInt16($0))) }
        text += ",\"threads\":[\(threads.joined(separator: ","))]"
        let modes = tables.modes.enumerated().map { place, name in
            quoted(place == 0 ? "" : RunLoop.Mode(name).spokenName)
        }
        text += ",\"modes\":[\(modes.joined(separator: ","))]"
        text += ",\"names\":[\(tables.names.map(quoted).joined(separator: ","))]"
        let subjects = tables.subjects.map { "[\($0.kind.rawValue),\(quoted($0.label)),\($0.loop)]" }
        text += ",\"subjects\":[\(subjects.joined(separator: ","))]"

        var before = began
        appendColumn("began", to: &text) { record in
            defer { before = record.began }
            return record.began - before
        }
        appendColumn("took", to: &text) { $0.duration }
        appendColumn("kind", to: &text) { Int64($0.kind.rawValue) }
        appendColumn("loop", to: &text) { Int64($0.loop) }
        appendColumn("thread", to: &text) { Int64($0.thread) }
        appendColumn("mode", to: &text) { Int64($0.mode) }
        appendColumn("subject", to: &text) { Int64($0.subject) }
        appendColumn("name", to: &text) { Int64($0.name) }
        appendColumn("depth", to: &text) { Int64($0.depth) }
        appendColumn("detail", to: &text) { Int64($0.detail) }
        return text + "}"
    }

    private func appendColumn(_ name: String, to text: inout String, _ value: (TraceRecord) -> Int64) {
        text += ",\"\(name)\":["
        var isFirst = true
        for record in records {
            if !isFirst { text += "," }
            isFirst = false
            text += String(value(record))
        }
        text += "]"
    }

    /// Keeps "</script>" in a label from ending the element.
    private func quoted(_ text: String) -> String {
        JSONText.quoted(text).replacingOccurrences(of: "<", with: "\\u003c")
    }
}
