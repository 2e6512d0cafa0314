package import RondoCore

/// What a recorder has kept, as a value: in order of beginning, whole, and free of any object of the program.
package struct Recording: Sendable, Equatable {
    package var tables: TraceTables
    /// In order of beginning.
    package var records: [TraceRecord]
    /// When recording began and ended, in nanoseconds on the monotonic clock.
    package var began: Int64
    package var ended: Int64
    /// How many older events there was no room for.
    package var dropped: Int

    package init(tables: TraceTables, records: [TraceRecord], began: Int64, ended: Int64, dropped: Int) {
        self.tables = tables
        self.records = Self.clipped(Self.sorted(records))
        self.began = began
        self.ended = ended
        self.dropped = dropped
    }

    /// Call-outs and passes are recorded when they end, and have to stand where they began. What began at the
    /// same moment stands in the order of nesting: the entry, then the longer span.
    private static func sorted(_ records: [TraceRecord]) -> [TraceRecord] {
        records.enumerated().sorted { a, b in
            let (first, second) = (a.element, b.element)
            if first.began != second.began { return first.began < second.began }
            if (first.kind == .entry) != (second.kind == .entry) { return first.kind == .entry }
            let (firstLength, secondLength) = (first.ended - first.began, second.ended - second.began)
            return firstLength == secondLength ? a.offset < b.offset : firstLength > secondLength
        }.map(\.element)
    }

    /// A span held back ends when the loop begins to run its mode, which is known more exactly than when
    /// it was looked at.
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

    /// Of moments in order: a recording of a day has so many of them that they cannot be gone through for each span.
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

    /// One activation: from entry to exit, or to the end of the recording.
    package struct Activation: Sendable, Equatable {
        package var began: Int64
        package var ended: Int64
        package var loop: UInt16
        package var thread: UInt16
        package var mode: UInt16
        package var depth: UInt8
        /// Nil if it had not ended.
        package var result: RunLoop.RunResult?

        package func contains(_ record: TraceRecord) -> Bool {
            record.began >= began && record.began <= ended
        }
    }

    /// In order of beginning. An exit whose entry has been dropped counts from the beginning.
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
            default: break
            }
        }
        return (found + open.values.flatMap { $0 }).sorted { $0.began < $1.began }
    }
}
