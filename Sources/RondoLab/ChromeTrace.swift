import Rondo
package import RondoTrace

// Chrome's trace-event format, which Perfetto (ui.perfetto.dev), speedscope and chrome://tracing open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// Activations, passes, waits and call-outs are complete events ("X") on the track of their thread, nested as
// they happened. Requests and notes are instants ("i"). Time in which an object was held back is an
// asynchronous span ("b", "e"), because such spans may overlap.

extension Recording {
    /// The recording as a JSON object of trace events. Times are microseconds from its beginning.
    package var chromeTrace: String {
        // One text, and not one for each event: there may be two million.
        var text =
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"recorder\":\"Rondo\",\"droppedEvents\":\"\(dropped)\"},"
            + "\"traceEvents\":[\n"
        text += metadata("process_name", thread: 0, name: "run loops")
        func add(_ event: String) {
            text += ",\n"
            text += event
        }
        for place in tables.threads.indices where place > 0 {
            add(metadata("thread_name", thread: place, name: threadName(UInt16(place))))
        }
        for activation in activations {
            let result = activation.result.map { "\($0)" } ?? "it had not ended"
            add(
                span(
                    "running in \(spokenMode(activation.mode))", category: "mode", from: activation.began,
                    to: activation.ended, thread: activation.thread,
                    arguments: [
                        ("loop", .string(loopName(activation.loop))),
                        ("depth", .integer(Int(activation.depth))),
                        ("ended", .string(result)),
                    ]))
        }
        var identity = 0
        for record in records {
            switch record.kind {
            case .entry, .exit: break
            case .heldBack:
                identity += 1
                for event in heldBack(record, identity: identity) { add(event) }
            case .stop, .wakeUp, .perform, .signal, .add, .enqueue, .mark: add(instant(record))
            case .pass, .wait, .observer, .block, .signalledSource, .descriptorSource, .timer, .mainQueue,
                .delegate, .deferredWork, .notification:
                add(
                    span(
                        title(record), category: record.kind.word, from: record.began, to: record.ended,
                        thread: record.thread, arguments: arguments(record)))
            }
        }
        text += "\n]}\n"
        return text
    }

    private func spokenMode(_ place: UInt16) -> String {
        Int(place) < tables.modes.count && place > 0
            ? RunLoop.Mode(tables.modes[Int(place)]).spokenName : "no mode"
    }

    private func title(_ record: TraceRecord) -> String {
        let label = label(record)
        switch record.kind {
        case .observer:
            return RunLoop.Activity(rawValue: UInt(record.detail)).words
                + (label.isEmpty ? "" : " “\(label)”")
        case .delegate: return "\(name(record)) “\(label)”"
        default: return record.kind.word + (label.isEmpty ? "" : " “\(label)”")
        }
    }

    private func arguments(_ record: TraceRecord) -> [(String, JSONText)] {
        var found: [(String, JSONText)] = [("mode", .string(spokenMode(record.mode)))]
        if record.depth > 1 { found.append(("depth", .integer(Int(record.depth)))) }
        if record.kind == .pass {
            found.append(("activities", .string(RunLoop.Activity(rawValue: UInt(record.detail)).words)))
        }
        return found
    }

    private func span(
        _ name: String, category: String, from: Int64, to: Int64, thread: UInt16,
        arguments: [(String, JSONText)]
    ) -> String {
        JSONText.object([
            ("name", .string(name)), ("cat", .string(category)), ("ph", .string("X")),
            ("ts", microseconds(from)),
            ("dur", .number(Double(to - from) / 1000)), ("pid", .integer(1)), ("tid", .integer(Int(thread))),
            ("args", .object(arguments)),
        ]).text
    }

    private func instant(_ record: TraceRecord) -> String {
        let name = name(record)
        var arguments: [(String, JSONText)] = []
        if record.loop > 0 { arguments.append(("loop", .string(loopName(record.loop)))) }
        if record.kind == .mark { arguments.append(("value", .integer(Int(record.duration)))) }
        let title = record.kind == .mark ? name : record.kind.word + (name.isEmpty ? "" : " “\(name)”")
        return JSONText.object([
            ("name", .string(title)), ("cat", .string(record.kind == .mark ? "note" : "asked")),
            ("ph", .string("i")),
            ("s", .string("t")), ("ts", microseconds(record.began)), ("pid", .integer(1)),
            ("tid", .integer(Int(record.thread))), ("args", .object(arguments)),
        ]).text
    }

    private func heldBack(_ record: TraceRecord, identity: Int) -> [String] {
        let kind = TraceRecord.Kind(rawValue: record.detail)?.word ?? "something"
        let label = label(record)
        let loop = Int(record.loop) < tables.loops.count ? tables.loops[Int(record.loop)].thread : 0
        let name = "\(kind)\(label.isEmpty ? "" : " “\(label)”") waits for \(spokenMode(record.mode))"
        return [("b", record.began), ("e", record.ended)].map { phase, time in
            JSONText.object([
                ("name", .string(name)), ("cat", .string("held back")), ("ph", .string(phase)),
                ("id", .integer(identity)), ("ts", microseconds(time)), ("pid", .integer(1)),
                ("tid", .integer(Int(loop))),
            ]).text
        }
    }

    private func metadata(_ name: String, thread: Int, name value: String) -> String {
        JSONText.object([
            ("name", .string(name)), ("ph", .string("M")), ("pid", .integer(1)), ("tid", .integer(thread)),
            ("args", .object([("name", .string(value))])),
        ]).text
    }

    private func microseconds(_ time: Int64) -> JSONText { .number(Double(time - began) / 1000) }
}

extension RunLoop.Activity {
    /// The names of the activities, joined by commas: "beforeTimers".
    package var words: String {
        let names: [(RunLoop.Activity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        return names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
    }
}
