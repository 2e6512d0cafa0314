import Rondo
internal import RondoTrace

/// A recording with the queries that the checks of experiments need.
struct Evidence {
    let recording: Recording

    init(_ recording: Recording) {
        self.recording = recording
    }

    private func isLabelled(_ record: TraceRecord, _ label: String) -> Bool {
        recording.label(record) == label
    }

    /// The call-outs to objects with this label, in order.
    func calls(_ label: String) -> [TraceRecord] {
        recording.records.filter { $0.kind.isCallOut && isLabelled($0, label) }
    }

    func calls(_ label: String, in mode: RunLoop.Mode) -> [TraceRecord] {
        calls(label).filter { runs($0, in: mode) }
    }

    /// The calls to the delegate of the connection with this label.
    func delegateCalls(_ label: String, _ name: String? = nil) -> [TraceRecord] {
        calls(label).filter { $0.kind == .delegate && (name == nil || recording.name($0) == name) }
    }

    func runs(_ record: TraceRecord, in mode: RunLoop.Mode) -> Bool {
        recording.modeName(record) == mode.spokenName
    }

    func ofKind(_ kind: TraceRecord.Kind) -> [TraceRecord] {
        recording.records.filter { $0.kind == kind }
    }

    /// The experiment's notes of this name.
    func notes(_ name: String) -> [TraceRecord] {
        recording.records.filter { $0.kind == .mark && recording.name($0) == name }
    }

    func heldBack(_ label: String) -> [TraceRecord] {
        recording.records.filter { $0.kind == .heldBack && isLabelled($0, label) }
    }

    /// The activations, on request only those of one mode or of one thread's loop.
    func activations(mode: RunLoop.Mode? = nil, loop: String? = nil) -> [Recording.Activation] {
        recording.activations.filter { activation in
            (mode == nil || name(ofMode: activation.mode) == mode?.spokenName)
                && (loop == nil || recording.loopName(activation.loop) == loop)
        }
    }

    func name(ofMode place: UInt16) -> String {
        recording.modeName(TraceRecord(kind: .entry, began: 0, mode: place))
    }

    /// The total seconds of the activations.
    func seconds(_ activations: [Recording.Activation]) -> Double {
        Double(activations.reduce(0) { $0 + $1.ended - $1.began }) / 1e9
    }

    func thread(of record: TraceRecord) -> String { recording.threadName(record.thread) }

    /// The time from the beginning of the recording, as text.
    func time(_ nanoseconds: Int64) -> String { Self.milliseconds(nanoseconds - recording.began) }

    /// True if both happened, and the second not before the first.
    static func inOrder(_ first: Int64?, _ second: Int64?) -> Bool {
        guard let first, let second else { return false }
        return first <= second
    }

    /// "312 ms", "0.4 ms".
    static func milliseconds(_ nanoseconds: Int64) -> String {
        let value = Double(nanoseconds) / 1e6
        return TextFormats.fixed(value, digits: abs(value) < 10 ? 1 : 0) + " ms"
    }

    /// "once", "3 times", "0 times".
    static func times(_ count: Int) -> String {
        count == 1 ? "once" : "\(TextFormats.grouped(count)) times"
    }
}

extension Check {
    /// Checks that `label` had no callback in `mode`, although the mode ran and something was waiting for the
    /// callback.
    static func silent(_ label: String, in mode: RunLoop.Mode, _ evidence: Evidence) -> Check {
        let count = evidence.calls(label, in: mode).count
        let runs = evidence.activations(mode: mode)
        let span = TextFormats.fixed(evidence.seconds(runs), digits: 2)
        return Check(
            "“\(label)” is never called in \(mode.spokenName)", count == 0 && !runs.isEmpty,
            seen: runs.isEmpty
                ? "the loop never ran in \(mode.spokenName), so nothing was shown"
                : "in \(span) s of \(mode.spokenName) it was called \(Evidence.times(count))")
    }

    static func called(_ label: String, in mode: RunLoop.Mode, _ evidence: Evidence) -> Check {
        let count = evidence.calls(label, in: mode).count
        return Check(
            "“\(label)” is called in \(mode.spokenName)", count > 0,
            seen: "in \(mode.spokenName) it was called \(Evidence.times(count))")
    }

    static func waited(_ label: String, _ evidence: Evidence) -> Check {
        let spans = evidence.heldBack(label)
        // Several objects of one connection may wait at the same time; that time counts once.
        var (total, until) = (Int64(0), Int64.min)
        for span in spans {
            total += max(0, span.ended - max(span.began, until))
            until = max(until, span.ended)
        }
        return Check(
            "meanwhile “\(label)” was ready, and waited", !spans.isEmpty,
            seen: spans.isEmpty
                ? "nothing of it was found waiting"
                : "it was ready and not deliverable for \(Evidence.milliseconds(total))")
    }

    /// Checks that the load with this label finished without an error.
    static func finished(_ label: String, _ evidence: Evidence) -> Check {
        let ends = evidence.delegateCalls(label, "connectionDidFinishLoading").count
        let failures = evidence.delegateCalls(label, "didFailWithError").count
        return Check(
            "“\(label)” ends, once and whole", ends == 1 && failures == 0,
            seen: "it finished \(Evidence.times(ends))" + (failures > 0 ? " and failed" : ""))
    }

    /// Checks that the task with this label had its last call exactly once.
    static func completed(_ label: String, _ evidence: Evidence) -> Check {
        let ends = evidence.delegateCalls(label, "didCompleteWithError").count
        return Check(
            "“\(label)” ends, once", ends == 1, seen: "it was told to be complete \(Evidence.times(ends))")
    }
}
