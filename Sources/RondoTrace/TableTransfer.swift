/// Carries entries of tables over to others, where they have other indices, and has records refer to them
/// there.
///
/// Loops, threads and objects are not known by what they are called: which of them the other tables have
/// already has to be said. Modes and names are.
package struct TableTransfer {
    /// The indices of entries in the other tables, by those in the tables that they are from.
    package struct Places: Sendable {
        package var loops = [0: 0]
        package var threads = [0: 0]
        package var subjects = [0: 0]
        var modes = [0: 0]
        var names = [0: 0]

        package init() {}
    }

    private typealias Limits = TraceTables.Limits

    private let source: TraceTables
    private(set) var tables: TraceTables
    private(set) var places = Places()

    /// - Parameter kept: The loops, threads and objects of `source` that `tables` has already.
    init(from source: TraceTables, to tables: TraceTables, kept: Places = Places()) {
        self.source = source
        self.tables = tables
        places.loops = kept.loops.filter { $0.value < tables.loops.count }
        places.threads = kept.threads.filter { $0.value < tables.threads.count }
        places.subjects = kept.subjects.filter { $0.value < tables.subjects.count }
        places.modes = Self.places(of: source.modes, in: tables.modes)
        places.names = Self.places(of: source.names, in: tables.names)
        // The thread of a loop may have become known since.
        for (place, known) in places.loops
        where place > 0 && place < source.loops.count && self.tables.loops[known].thread == 0 {
            self.tables.loops[known].thread = thread(source.loops[place].thread)
        }
    }

    private static func places(of names: [String], in table: [String]) -> [Int: Int] {
        let known = Dictionary(zip(table, table.indices)) { first, _ in first }
        var places: [Int: Int] = [:]
        for (place, name) in names.enumerated() { places[place] = known[name] }
        return places
    }

    mutating func carry(_ record: TraceRecord) -> TraceRecord {
        var record = record
        record.loop = loop(record.loop)
        record.thread = thread(record.thread)
        record.mode = mode(record.mode)
        record.name = name(record.name)
        record.subject = subject(record.subject)
        return record
    }

    // Each returns 0 for an index that has no entry.

    mutating func loop(_ place: UInt16) -> UInt16 {
        if let known = places.loops[Int(place)] { return UInt16(known) }
        guard Int(place) < source.loops.count else { return 0 }
        var loop = source.loops[Int(place)]
        loop.thread = thread(loop.thread)
        return UInt16(Self.add(loop, Int(place), to: &tables.loops, &places.loops, limit: Limits.loops))
    }

    mutating func subject(_ place: UInt32) -> UInt32 {
        if let known = places.subjects[Int(place)] { return UInt32(known) }
        guard Int(place) < source.subjects.count else { return 0 }
        var subject = source.subjects[Int(place)]
        subject.loop = loop(subject.loop)
        return UInt32(
            Self.add(subject, Int(place), to: &tables.subjects, &places.subjects, limit: Limits.subjects))
    }

    mutating func thread(_ place: UInt16) -> UInt16 {
        if let known = places.threads[Int(place)] { return UInt16(known) }
        guard Int(place) < source.threads.count else { return 0 }
        let name = source.threads[Int(place)]
        return UInt16(Self.add(name, Int(place), to: &tables.threads, &places.threads, limit: Limits.threads))
    }

    mutating func mode(_ place: UInt16) -> UInt16 {
        if let known = places.modes[Int(place)] { return UInt16(known) }
        guard Int(place) < source.modes.count else { return 0 }
        let name = source.modes[Int(place)]
        return UInt16(Self.add(name, Int(place), to: &tables.modes, &places.modes, limit: Limits.modes))
    }

    mutating func name(_ place: UInt16) -> UInt16 {
        if let known = places.names[Int(place)] { return UInt16(known) }
        guard Int(place) < source.names.count else { return 0 }
        let name = source.names[Int(place)]
        return UInt16(Self.add(name, Int(place), to: &tables.names, &places.names, limit: Limits.names))
    }

    private static func add<Entry>(
        _ entry: Entry, _ place: Int, to table: inout [Entry], _ places: inout [Int: Int], limit: Int
    ) -> Int {
        guard table.count < Limits.files * limit else { return 0 }
        places[place] = table.count
        table.append(entry)
        return table.count - 1
    }
}
