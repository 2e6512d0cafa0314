package import RondoCore

/// The events of a recorder as a value: in order of beginning, complete, and without references to the
/// program's objects.
package struct Recording: Sendable, Equatable {
    package var tables: TraceTables
    /// In order of beginning; none begins before the recording.
    package var records: [TraceRecord]
    /// The beginning and end of the recording, in nanoseconds on the monotonic clock.
    package var began: Int64
    package var ended: Int64
    /// The number of older events that were dropped.
    package var dropped: Int
    /// False if it was read from a file that ends before the recording did: the program was killed, or could
    /// not write on.
    package var isComplete = true

    package init(tables: TraceTables, records: [TraceRecord], began: Int64, ended: Int64, dropped: Int) {
        self.tables = tables
        // Spans that have become shorter may belong elsewhere in the order of nesting.
        self.records = Self.sorted(Self.moved(Self.clipped(Self.sorted(records)), to: began))
        self.began = began
        self.ended = ended
        self.dropped = dropped
    }

    /// Call-outs and passes are recorded when they end, and are sorted by when they began. Events that began
    /// at the same moment are in the order of nesting: the entry, then the longer span.
    private static func sorted(_ records: [TraceRecord]) -> [TraceRecord] {
        records.enumerated().sorted { a, b in
            let (first, second) = (a.element, b.element)
            if first.began != second.began { return first.began < second.began }
            if (first.kind == .entry) != (second.kind == .entry) { return first.kind == .entry }
            let (firstLength, secondLength) = (first.ended - first.began, second.ended - second.began)
            return firstLength == secondLength ? a.offset < b.offset : firstLength > secondLength
        }.map(\.element)
    }

    /// Ends the span of a held-back member when the loop begins to run the member's mode: that is more exact
    /// than the time of the check.
    private static func clipped(_ records: [TraceRecord]) -> [TraceRecord] {
        guard records.contains(where: { $0.kind == .heldBack }) else { return records }
        struct Place: Hashable {
            let loop: UInt16
            let mode: UInt16
        }
        var entries: [Place: [Int64]] = [:]
        for record in records where record.kind == .entry {
            entries[Place(loop: record.loop, mode: record.mode), default: []].append(record.began)
        }
        return records.map { record in
            guard record.kind == .heldBack,
                let next = entries[Place(loop: record.loop, mode: record.mode)].flatMap({
                    first(of: $0, after: record.began)
                }),
                next < record.ended
            else { return record }
            var record = record
            record.duration = next - record.began
            return record
        }
    }

    /// Has the spans that had begun before the recording begin with it: only the rest of them is in it.
    private static func moved(_ records: [TraceRecord], to began: Int64) -> [TraceRecord] {
        records.map { record in
            guard record.began < began else { return record }
            var record = record
            if record.kind != .mark { record.duration = max(0, record.ended - began) }
            record.began = began
            return record
        }
    }

    /// Binary search: a recording of a day has too many moments to go through them all for each span.
    private static func first(of moments: [Int64], after moment: Int64) -> Int64? {
        var (low, high) = (0, moments.count)
        while low < high {
            let middle = (low + high) / 2
            if moments[middle] > moment { high = middle } else { low = middle + 1 }
        }
        return low < moments.count ? moments[low] : nil
    }

    // MARK: - Names

    package func modeName(_ record: TraceRecord) -> String {
        record.mode == 0 ? "" : RunLoop.Mode(name(in: tables.modes, Int(record.mode))).shortName
    }

    package func name(_ record: TraceRecord) -> String { name(in: tables.names, Int(record.name)) }

    package func label(_ record: TraceRecord) -> String {
        Int(record.subject) < tables.subjects.count ? tables.subjects[Int(record.subject)].label : ""
    }

    package func threadName(_ place: UInt16) -> String {
        let name = name(in: tables.threads, Int(place))
        return place == 0 ? "" : name.isEmpty ? "thread \(place)" : name
    }

    package func loopName(_ place: UInt16) -> String {
        let name = Int(place) < tables.loops.count ? tables.loops[Int(place)].name : ""
        return place == 0 ? "" : name.isEmpty ? "loop \(place)" : name
    }

    private func name(in table: [String], _ place: Int) -> String { place < table.count ? table[place] : "" }

    // MARK: - Activations

    /// Whether a run loop has begun a pass. What was asked of loops is recorded also if none has.
    package var hasRun: Bool { records.contains { $0.kind == .entry || $0.kind == .exit } }

    /// One activation: from its entry to its exit, or to the end of the recording.
    package struct Activation: Sendable, Equatable {
        package var began: Int64
        package var ended: Int64
        package var loop: UInt16
        package var thread: UInt16
        package var mode: UInt16
        package var depth: UInt8
        /// Nil if the activation had not ended.
        package var result: RunLoop.RunResult?

        package func contains(_ record: TraceRecord) -> Bool {
            record.began >= began && record.began <= ended
        }
    }

    /// The activations in order of beginning. If the entry of one was dropped, it counts from the beginning
    /// of the recording.
    package var activations: [Activation] {
        var open: [UInt16: [Activation]] = [:]
        var found: [Activation] = []
        for record in records {
            switch record.kind {
            case .entry:
                open[record.loop, default: []].append(
                    Activation(
                        began: record.began, ended: ended, loop: record.loop, thread: record.thread,
                        mode: record.mode, depth: record.depth, result: nil))
            case .exit:
                var activation =
                    open[record.loop]?.popLast()
                    ?? Activation(
                        began: began, ended: ended, loop: record.loop, thread: record.thread,
                        mode: record.mode, depth: record.depth, result: nil)
                activation.ended = record.began
                activation.result = RunLoop.RunResult(rawValue: Int32(record.detail))
                found.append(activation)
            case .pass, .wait, .observer, .block, .signalledSource, .descriptorSource, .timer, .mainQueue,
                .delegate,
                .stop, .wakeUp, .perform, .signal, .add, .heldBack, .mark, .deferredWork, .notification,
                .enqueue:
                break
            }
        }
        return (found + open.values.flatMap { $0 }).sorted { $0.began < $1.began }
    }
}
