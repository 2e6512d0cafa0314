internal import RondoCore

// The format of a recording that is written while a program runs: a head, then frames. A reader gets
// everything that was written before the program ended, in whatever way it ended.
//
//     "RONDOTR1"
//     frame:  type (1 byte)  length (4 bytes)  payload
//       'H'   began (8)
//       'L'   place (2)  thread (2)  name        a loop; it may come again, once its thread is known
//       'T' 'M' 'N'   place (2)  name            thread, mode, name
//       'S'   place (4)  kind (1)  loop (2)  label
//       'E'   records, 32 bytes each
//       'B'   records of spans held back that have begun; each comes again in an 'E' when it has ended
//       'R'   entries of the activations that ran when the file began, as records that begin then
//       'K'   'L', 'T' or 'S' (1), then pairs of places (4, 4)
//             the loops, threads or objects that were in the tables of the file that this one continues:
//             here, there
//       'U'   until (8)                          everything before this moment has been written
//       'Z'   ended (8)  dropped (8)
//
// Numbers are little-endian. A reader skips frames of an unknown type.
//
// A file that is full is continued by another one (`TraceWriter`), which begins at the moment of the full
// one's last 'U'. Its indices are the same, and it repeats the tables, or it begins with a 'K', and has
// tables of its own, with the loops that live and what the following refers to. It repeats the 'B' of spans
// that have not ended. Records of spans that began in the full one say when: where the later file is read
// alone, `Recording` has them begin with it. With tables of its own, it continues the activations of its 'R'
// alone: a loop without a place of its own is not found again.

/// The reason why a file could not be read as a recording.
package enum TraceFileError: Error, Equatable, CustomStringConvertible {
    case notARecording
    /// A frame has impossible content; `offset` is where the frame begins.
    case damaged(offset: Int)

    package var description: String {
        switch self {
        case .notARecording: "this is not a recording of Rondo's: it does not begin with RONDOTR1"
        case .damaged(let offset): "the recording is damaged at byte \(offset)"
        }
    }
}

/// Encodes the events that a recorder drains as frames.
package struct TraceEncoder {
    package static let magic = Array("RONDOTR1".utf8)
    private var written = TraceTables()

    package init() {}

    package static func head(began: Int64) -> [UInt8] {
        magic + frame("H") { $0.append(began) }
    }

    /// The frames of new entries of `tables`, and of `records`.
    package mutating func frames(
        _ tables: TraceTables, _ records: [TraceRecord], begun: [TraceRecord] = [], until: Int64? = nil
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        for (place, loop) in tables.loops.enumerated()
        where place >= written.loops.count || written.loops[place] != loop {
            bytes += Self.frame("L") {
                $0.append(UInt16(place))
                $0.append(loop.thread)
                $0 += loop.name.utf8
            }
        }
        for (type, table, old) in [
            ("T" as Character, tables.threads, written.threads.count),
            ("M", tables.modes, written.modes.count),
            ("N", tables.names, written.names.count),
        ] {
            for place in old..<max(old, table.count) {
                bytes += Self.frame(type) {
                    $0.append(UInt16(place))
                    $0 += table[place].utf8
                }
            }
        }
        for place in written.subjects.count..<max(written.subjects.count, tables.subjects.count) {
            let subject = tables.subjects[place]
            bytes += Self.frame("S") {
                $0.append(UInt32(place))
                $0.append(subject.kind.rawValue)
                $0.append(subject.loop)
                $0 += subject.label.utf8
            }
        }
        written = tables
        if !records.isEmpty {
            bytes += Self.frame("E") { for record in records { $0.append(record) } }
        }
        if !begun.isEmpty {
            bytes += Self.frame("B") { for record in begun { $0.append(record) } }
        }
        if let until { bytes += Self.frame("U") { $0.append(until) } }
        return bytes
    }

    package static func end(_ ended: Int64, dropped: Int) -> [UInt8] {
        frame("Z") {
            $0.append(ended)
            $0.append(Int64(dropped))
        }
    }

    /// The frame of the activations that run when a file begins, at `began`.
    package static func running(_ entries: [TraceRecord], at began: Int64) -> [UInt8] {
        if entries.isEmpty { return [] }
        return frame("R") { bytes in
            for var entry in entries {
                entry.began = began
                bytes.append(entry)
            }
        }
    }

    /// The frames of the entries that the tables before had, for tables that begin anew.
    package static func kept(_ places: TableTransfer.Places) -> [UInt8] {
        var bytes: [UInt8] = []
        for (type, places) in [
            ("L" as Character, places.loops), ("T", places.threads), ("S", places.subjects),
        ] {
            bytes += frame("K") {
                $0.append(type.asciiValue ?? 0)
                for (before, place) in places where place > 0 {
                    $0.append(UInt32(place))
                    $0.append(UInt32(before))
                }
            }
        }
        return bytes
    }

    private static func frame(_ type: Character, _ payload: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes: [UInt8] = []
        payload(&bytes)
        var frame = [type.asciiValue ?? 0]
        frame.append(UInt32(bytes.count))
        return frame + bytes
    }
}

extension Recording {
    /// The recording as a file.
    package var file: [UInt8] {
        var encoder = TraceEncoder()
        return TraceEncoder.head(began: began)
            + encoder.frames(tables, records, until: isComplete ? nil : ended)
            + (isComplete ? TraceEncoder.end(ended, dropped: dropped) : [])
    }

    /// Reads a file of `TraceEncoder`. A file that breaks off inside a frame ends before that frame.
    ///
    /// - Parameter earlier: The file that `file` may continue. If it continues another one, or `earlier`
    ///   cannot be read, `file` is read alone. `earlier` is read alone if `file` is empty.
    package init(file: [UInt8], continuing earlier: [UInt8]? = nil) throws(TraceFileError) {
        var reader = TraceReader()
        if let earlier {
            // Why `earlier` cannot be read does not matter here: `file` is read alone then, and its error is
            // thrown.
            let isSound = (try? reader.read(earlier)) != nil
            if isSound, file.isEmpty {
                self = reader.recording
                return
            }
            if !isSound || !reader.isContinued(by: file) { reader = TraceReader() }
        }
        try reader.read(file)
        self = reader.recording
    }
}

/// Reads a file, and then those that continue it.
private struct TraceReader {
    private var tables = TraceTables()
    private var records: [TraceRecord] = []
    private var begun: [TraceRecord] = []
    /// Nil as long as nothing was read.
    private var began: Int64?
    private var until: Int64?
    private var ended: Int64?
    private var dropped = 0

    var recording: Recording {
        let last = ended ?? until ?? records.map(\.ended).max() ?? began ?? 0
        let all = records + Self.unended(begun, among: records, until: last)
        var recording = Recording(
            tables: tables, records: all, began: began ?? 0, ended: last, dropped: dropped)
        recording.isComplete = ended != nil
        return recording
    }

    /// Whether `file` begins where the file that was read ends.
    func isContinued(by file: [UInt8]) -> Bool {
        let start = TraceEncoder.magic.count
        guard let until, file.starts(with: TraceEncoder.magic), file.count > start,
            file[start] == UInt8(ascii: "H")
        else { return false }
        return Self.time(file[...], at: start + 5) == until
    }

    mutating func read(_ file: [UInt8]) throws(TraceFileError) {
        guard file.starts(with: TraceEncoder.magic) else { throw .notARecording }
        let isFirst = began == nil
        let known = (records: records.count, begun: begun.count, until: until)
        // The entries of the activations that it continues.
        var running: [TraceRecord] = []
        // The tables of the file before, if this one has others.
        var before: TraceTables?
        var kept = TableTransfer.Places()
        var offset = TraceEncoder.magic.count
        while let length: UInt32 = Self.number(file[...], at: offset + 1),
            offset + 5 + Int(length) <= file.count
        {
            let payload = file[(offset + 5)..<(offset + 5 + Int(length))]
            let isSound: Bool
            switch file[offset] {
            case UInt8(ascii: "H"):
                let value = Self.time(payload, at: payload.startIndex)
                if isFirst { began = value }
                isSound = value != nil
            case UInt8(ascii: "L"): isSound = Self.readLoop(payload, into: &tables)
            case UInt8(ascii: "T"):
                isSound = Self.readName(payload, into: &tables.threads, limit: TraceTables.Limits.threads)
            case UInt8(ascii: "M"):
                isSound = Self.readName(payload, into: &tables.modes, limit: TraceTables.Limits.modes)
            case UInt8(ascii: "N"):
                isSound = Self.readName(payload, into: &tables.names, limit: TraceTables.Limits.names)
            case UInt8(ascii: "S"): isSound = Self.readSubject(payload, into: &tables)
            case UInt8(ascii: "K"):
                if !isFirst, before == nil { (before, tables) = (tables, TraceTables()) }
                isSound = Self.readPlaces(payload, into: &kept)
            case UInt8(ascii: "E"): isSound = Self.readRecords(payload, into: &records)
            case UInt8(ascii: "B"): isSound = Self.readRecords(payload, into: &begun)
            case UInt8(ascii: "R"):
                var entries: [TraceRecord] = []
                isSound = Self.readRecords(payload, into: &entries)
                // The file before has them.
                if isFirst { records += entries } else { running += entries }
            case UInt8(ascii: "U"):
                until = Self.time(payload, at: payload.startIndex)
                isSound = until != nil
            case UInt8(ascii: "Z"):
                let count: Int64? = Self.number(payload, at: payload.startIndex + 8)
                ended = Self.time(payload, at: payload.startIndex)
                dropped = Int(max(0, count ?? 0))
                isSound = count != nil && ended != nil
            default: isSound = true
            }
            guard isSound else { throw .damaged(offset: offset) }
            offset += 5 + Int(length)
        }
        guard let earlier = before else { return }
        var transfer = TableTransfer(from: tables, to: earlier, kept: kept)
        for index in known.records..<records.count { records[index] = transfer.carry(records[index]) }
        for index in known.begun..<begun.count { begun[index] = transfer.carry(begun[index]) }
        let continued = Set(running.map { transfer.loop($0.loop) })
        tables = transfer.tables
        if let moment = known.until {
            divideActivations(at: known.records, moment: moment, except: continued)
        }
    }

    /// Splits activations at the file boundary: those open at the end of the earlier file end there, and
    /// those that only end in this file begin at its start.
    ///
    /// - Parameters:
    ///   - start: The index of this file's first record.
    ///   - continued: The loops whose activations are the same in both files.
    private mutating func divideActivations(at start: Int, moment: Int64, except continued: Set<UInt16>) {
        let entries = Self.unpaired(records[..<start]).entries.filter { !continued.contains($0.loop) }
        let exits = Self.unpaired(records[start...]).exits.filter { !continued.contains($0.loop) }
        for entry in entries {
            var exit = entry
            exit.kind = .exit
            exit.began = max(moment, entry.began)
            records.append(exit)
        }
        // The innermost activation of a loop ends first, and begins last.
        for exit in exits.reversed() {
            var entry = exit
            entry.kind = .entry
            entry.began = min(moment, exit.began)
            entry.detail = 0
            records.append(entry)
        }
    }

    /// The entries without an exit, and the exits without an entry.
    private static func unpaired(
        _ records: ArraySlice<TraceRecord>
    ) -> (entries: [TraceRecord], exits: [TraceRecord]) {
        var open: [UInt16: [TraceRecord]] = [:]
        var exits: [TraceRecord] = []
        for record in records {
            if record.kind == .entry {
                open[record.loop, default: []].append(record)
            } else if record.kind == .exit, open[record.loop]?.popLast() == nil {
                exits.append(record)
            }
        }
        return (open.values.flatMap { $0 }, exits)
    }

    /// The spans that had not ended when the program ended: they last to the end of the file.
    private static func unended(
        _ begun: [TraceRecord], among records: [TraceRecord], until last: Int64
    ) -> [TraceRecord] {
        func withoutLength(_ record: TraceRecord) -> TraceRecord {
            var record = record
            record.duration = 0
            return record
        }
        // A span may be said to have begun in several files.
        var known = Set(records.filter { $0.kind == .heldBack }.map(withoutLength))
        return begun.map(withoutLength).filter { $0.kind == .heldBack && known.insert($0).inserted }.map {
            record in
            var record = record
            record.duration = max(0, last - record.began)
            return record
        }
    }

    /// A time with which sums and differences cannot overflow.
    private static func time(_ payload: ArraySlice<UInt8>, at offset: Int) -> Int64? {
        let value: Int64? = number(payload, at: offset)
        return value.flatMap { TraceRecord.times.contains($0) ? $0 : nil }
    }

    private static func readLoop(_ payload: ArraySlice<UInt8>, into tables: inout TraceTables) -> Bool {
        guard let place: UInt16 = number(payload, at: payload.startIndex),
            let thread: UInt16 = number(payload, at: payload.startIndex + 2)
        else { return false }
        let loop = TraceTables.Loop(
            name: String(decoding: payload.dropFirst(4), as: UTF8.self), thread: thread)
        return put(loop, at: Int(place), in: &tables.loops, limit: TraceTables.Limits.loops)
    }

    private static func readName(
        _ payload: ArraySlice<UInt8>, into table: inout [String], limit: Int
    ) -> Bool {
        guard let place: UInt16 = number(payload, at: payload.startIndex) else { return false }
        return put(
            String(decoding: payload.dropFirst(2), as: UTF8.self), at: Int(place), in: &table, limit: limit)
    }

    private static func readSubject(_ payload: ArraySlice<UInt8>, into tables: inout TraceTables) -> Bool {
        guard let place: UInt32 = number(payload, at: payload.startIndex),
            let raw: UInt8 = number(payload, at: payload.startIndex + 4),
            let kind = TraceRecord.Kind(rawValue: raw),
            let loop: UInt16 = number(payload, at: payload.startIndex + 5)
        else { return false }
        let subject = TraceTables.Subject(
            kind: kind, label: String(decoding: payload.dropFirst(7), as: UTF8.self), loop: loop)
        return put(
            subject, at: Int(place), in: &tables.subjects, limit: TraceTables.Limits.subjects)
    }

    private static func readPlaces(
        _ payload: ArraySlice<UInt8>, into places: inout TableTransfer.Places
    ) -> Bool {
        var pairs: [Int: Int] = [:]
        for start in stride(from: payload.startIndex + 1, to: payload.endIndex, by: 8) {
            guard let place: UInt32 = number(payload, at: start),
                let before: UInt32 = number(payload, at: start + 4), place > 0, before > 0
            else { return false }
            pairs[Int(place)] = Int(before)
        }
        switch payload.first ?? 0 {
        case UInt8(ascii: "L"): places.loops.merge(pairs) { $1 }
        case UInt8(ascii: "T"): places.threads.merge(pairs) { $1 }
        case UInt8(ascii: "S"): places.subjects.merge(pairs) { $1 }
        default: return false
        }
        return true
    }

    /// Puts an entry at an index. Indices come in order without gaps. Index 0 stands for "none" and cannot be
    /// set.
    private static func put<Entry>(_ entry: Entry, at place: Int, in table: inout [Entry], limit: Int) -> Bool
    {
        guard place > 0, place <= table.count, place < TraceTables.Limits.files * limit else { return false }
        if place == table.count { table.append(entry) } else { table[place] = entry }
        return true
    }

    private static func readRecords(_ payload: ArraySlice<UInt8>, into records: inout [TraceRecord]) -> Bool {
        guard payload.count % TraceRecord.encodedSize == 0 else { return false }
        for start in stride(from: payload.startIndex, to: payload.endIndex, by: TraceRecord.encodedSize) {
            guard let record = TraceRecord(payload, at: start), record.hasSoundTimes else { return false }
            records.append(record)
        }
        return true
    }

    fileprivate static func number<Number: FixedWidthInteger>(
        _ bytes: ArraySlice<UInt8>, at offset: Int
    ) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= bytes.startIndex, offset + size <= bytes.endIndex else { return nil }
        var value: Number = 0
        for index in (0..<size).reversed() {
            value = value << 8 | Number(truncatingIfNeeded: bytes[offset + index])
        }
        return value
    }
}

extension TraceRecord {
    package static let encodedSize = 32
    /// 73 years from the start of the machine: with longer times sums could overflow.
    fileprivate static let times: ClosedRange<Int64> = 0...(1 << 61)

    fileprivate var hasSoundTimes: Bool {
        // Two numbers of at most 2^61 have a sum that cannot overflow.
        Self.times.contains(began)
            && (kind == .mark || Self.times.contains(duration) && Self.times.contains(began + duration))
    }

    fileprivate init?(_ bytes: ArraySlice<UInt8>, at start: Int) {
        guard let began: Int64 = TraceReader.number(bytes, at: start),
            let duration: Int64 = TraceReader.number(bytes, at: start + 8),
            let subject: UInt32 = TraceReader.number(bytes, at: start + 16),
            let loop: UInt16 = TraceReader.number(bytes, at: start + 20),
            let thread: UInt16 = TraceReader.number(bytes, at: start + 22),
            let mode: UInt16 = TraceReader.number(bytes, at: start + 24),
            let name: UInt16 = TraceReader.number(bytes, at: start + 26),
            let kind = Kind(rawValue: bytes[start + 29])
        else { return nil }
        self.init(
            kind: kind, began: began, duration: duration, loop: loop, thread: thread, mode: mode,
            subject: subject, name: name, depth: bytes[start + 28], detail: bytes[start + 30])
    }
}

extension [UInt8] {
    fileprivate mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(_ record: TraceRecord) {
        append(record.began)
        append(record.duration)
        append(record.subject)
        append(record.loop)
        append(record.thread)
        append(record.mode)
        append(record.name)
        append(record.depth)
        append(record.kind.rawValue)
        append(record.detail)
        append(UInt8(0))
    }
}
