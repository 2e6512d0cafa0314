import Rondo
import RondoTrace

/// A way in which a run loop could be wrong, played on a recording of one that is right.
struct Alteration: Sendable, CustomStringConvertible {
    let description: String
    let alter: @Sendable (inout Recording) -> Void

    init(_ description: String, _ alter: @escaping @Sendable (inout Recording) -> Void) {
        self.description = description
        self.alter = alter
    }

    func callAsFunction(_ recording: Recording) -> Recording {
        var recording = recording
        alter(&recording)
        return recording
    }
}

extension Recording {
    func place(ofMode name: String) -> UInt16 {
        UInt16(tables.modes.firstIndex { RunLoop.Mode($0) == RunLoop.Mode(spoken: name) } ?? 0)
    }

    func place(ofLoop name: String) -> UInt16 {
        UInt16(tables.loops.firstIndex { $0.name == name } ?? 0)
    }

    func isCall(_ record: TraceRecord, _ label: String) -> Bool {
        record.kind.isCallOut && self.label(record) == label
    }

    func isNote(_ record: TraceRecord, _ name: String) -> Bool {
        record.kind == .mark && self.name(record) == name
    }

    /// The middle of the first activation of `mode`.
    func middle(of mode: String) -> Int64 {
        let place = place(ofMode: mode)
        return activations.first { $0.mode == place }.map { ($0.began + $0.ended) / 2 } ?? began
    }

    mutating func remove(where matches: (Recording, TraceRecord) -> Bool) {
        let whole = self
        records.removeAll { matches(whole, $0) }
    }

    /// Changes the first record that matches, or all of them.
    mutating func change(
        all: Bool = false, where matches: (Recording, TraceRecord) -> Bool,
        _ change: (inout TraceRecord) -> Void
    ) {
        let whole = self
        for place in records.indices where matches(whole, records[place]) {
            change(&records[place])
            if !all { break }
        }
        self = Recording(tables: tables, records: records, began: began, ended: ended, dropped: dropped)
    }

    /// The same once more, changed.
    mutating func repeatFirst(
        where matches: (Recording, TraceRecord) -> Bool, _ change: (Recording, inout TraceRecord) -> Void
    ) {
        let whole = self
        guard var record = records.first(where: { matches(whole, $0) }) else { return }
        change(whole, &record)
        self = Recording(
            tables: tables, records: records + [record], began: began, ended: ended, dropped: dropped)
    }
}

extension RunLoop.Mode {
    fileprivate init(spoken name: String) {
        switch name {
        case "default": self = .default
        case "tracking": self = .tracking
        default: self = RunLoop.Mode(name)
        }
    }
}

// MARK: - What may go wrong

extension Alteration {
    /// A callback is made in a mode that it does not belong to.
    static func called(_ label: String, in mode: String) -> Alteration {
        Alteration("\(label) is called in \(mode)") { recording in
            recording.repeatFirst(where: { $0.isCall($1, label) }) { whole, record in
                record.began = whole.middle(of: mode)
                record.mode = whole.place(ofMode: mode)
            }
        }
    }

    static func neverCalled(_ label: String) -> Alteration {
        Alteration("\(label) is never called") { $0.remove { $0.isCall($1, label) } }
    }

    static func neverCalled(_ label: String, in mode: String) -> Alteration {
        Alteration("\(label) is never called in \(mode)") { recording in
            recording.remove { $0.isCall($1, label) && $0.modeName($1) == mode }
        }
    }

    /// A load loses its end.
    static func lost(_ label: String) -> Alteration {
        Alteration("\(label) never ends") { recording in
            recording.remove { $0.isCall($1, label) && $0.name($1) == "connectionDidFinishLoading" }
        }
    }

    static func neverWaited(_ label: String) -> Alteration {
        Alteration("\(label) never waited") { recording in
            recording.remove { $1.kind == .heldBack && $0.label($1) == label }
        }
    }

    static func neverRan(_ mode: String) -> Alteration {
        Alteration("\(mode) never ran") { recording in
            recording.remove { [.entry, .exit].contains($1.kind) && $0.modeName($1) == mode }
        }
    }

    static func neverNoted(_ name: String) -> Alteration {
        Alteration("“\(name)” never happened") { $0.remove { $0.isNote($1, name) } }
    }

    /// Something comes that long after it did, or before.
    static func moved(_ name: String, by milliseconds: Int64) -> Alteration {
        Alteration("“\(name)” comes \(milliseconds) ms later") { recording in
            recording.change(where: { $0.isNote($1, name) }) { $0.began += milliseconds * 1_000_000 }
        }
    }

    static func repeated(_ name: String, milliseconds: Int64 = 0) -> Alteration {
        Alteration("“\(name)” happens twice") { recording in
            recording.repeatFirst(where: { $0.isNote($1, name) }) { $1.began += milliseconds * 1_000_000 }
        }
    }

    static func ended(_ result: RunLoop.RunResult, as other: RunLoop.RunResult) -> Alteration {
        Alteration("runs end by \(other) and not \(result)") { recording in
            recording.change(all: true, where: { $1.kind == .exit && $1.detail == UInt8(result.rawValue) }) {
                $0.detail = UInt8(other.rawValue)
            }
        }
    }
}
