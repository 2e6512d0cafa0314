internal import CRondoStart
internal import CRondoSystem
internal import RondoCore

/// The tables that records refer to by index: loops, threads, modes, names and the objects that were called.
///
/// Index 0 of each table means "none". No table grows beyond its limit, whatever a program does: the last
/// entry stands for all that have no room, and is called so.
package struct TraceTables: Sendable, Equatable {
    /// The name of the entries that stand for all without room.
    package static let others = "others, beyond the limit"

    package enum Limits {
        package static let loops = 1 << 12
        package static let threads = 1 << 12
        package static let modes = 1 << 12
        package static let names = 1 << 15
        package static let subjects = 1 << 16
        /// The number of files that a recording is read from: it has the entries of each.
        package static let files = 2
        /// The most bytes of a name or label; the rest is cut off.
        package static let nameLength = 256
    }

    package struct Loop: Sendable, Equatable {
        /// The name of the loop's thread; empty if it has none.
        package var name: String
        /// 0 as long as no event was seen on the loop's thread.
        package var thread: UInt16

        package init(name: String, thread: UInt16) {
            self.name = name
            self.thread = thread
        }
    }

    /// A timer, source, observer or connection.
    package struct Subject: Sendable, Equatable {
        package var kind: TraceRecord.Kind
        /// Empty if the object has no label.
        package var label: String
        package var loop: UInt16

        package init(kind: TraceRecord.Kind, label: String, loop: UInt16) {
            self.kind = kind
            self.label = label
            self.loop = loop
        }
    }

    package var loops = [Loop(name: "", thread: 0)]
    package var threads = [""]
    /// By raw value.
    package var modes = [""]
    package var names = [""]
    package var subjects = [Subject(kind: .mark, label: "", loop: 0)]

    package init() {}

    /// Whether one of the tables has entries for this share of its room.
    func isFull(_ share: Double) -> Bool {
        [
            (loops.count, Limits.loops), (threads.count, Limits.threads), (modes.count, Limits.modes),
            (names.count, Limits.names), (subjects.count, Limits.subjects),
        ].contains { count, limit in Double(count) >= share * Double(limit) }
    }
}

/// Finds the indices of entries in the tables, and adds new entries.
struct TraceIndex {
    private struct SubjectKey: Hashable {
        let object: ObjectIdentifier
        let kind: TraceRecord.Kind
        let loop: UInt16
        let label: String
    }

    private(set) var tables = TraceTables()
    /// Whether the tables were half full when they began: new ones would soon be full, too.
    private var beganHalfFull = false
    private var loops: [ObjectIdentifier: UInt16] = [:]
    /// The last thread of each identity.
    private var threads: [pthread_t: (serial: UInt64, place: UInt16)] = [:]
    private var modes: [String: UInt16] = [:]
    private var names: [String: UInt16] = [:]
    private var subjects: [SubjectKey: UInt32] = [:]
    // The entries that nearly every event needs again: a look-up in a table costs some 30 ns.
    private var lastMode: (name: String, place: UInt16) = ("", 0)
    private var lastThread: (serial: UInt64, place: UInt16)?
    private var lastLoop: (loop: ObjectIdentifier, place: UInt16)?
    private var lastSubject: (key: SubjectKey, place: UInt32)?

    /// - Parameter isOwn: True if the calling thread, at `thread`, is the loop's own.
    mutating func place(of loop: RunLoop, isOwn: Bool, thread: UInt16) -> (place: UInt16, isNew: Bool) {
        if let last = lastLoop, last.loop == ObjectIdentifier(loop) { return (last.place, false) }
        if let known = loops[ObjectIdentifier(loop)] {
            // Cached only once the loop's thread is known.
            if isOwn { lastLoop = (ObjectIdentifier(loop), known) }
            if isOwn, tables.loops[Int(known)].thread == 0 { tables.loops[Int(known)].thread = thread }
            return (known, false)
        }
        // A loop whose thread has ended was forgotten, and each request to it would take a place.
        guard loop.isAlive else { return (0, false) }
        let name = loop.threadName.map(readable) ?? (isOwn ? tables.threads[Int(thread)] : "")
        let added = Self.add(
            TraceTables.Loop(name: cut(name), thread: isOwn ? thread : 0), to: &tables.loops,
            others: TraceTables.Loop(name: TraceTables.others, thread: 0), limit: TraceTables.Limits.loops)
        let place = UInt16(added.place)
        if added.isOwn { loops[ObjectIdentifier(loop)] = place }
        return (place, added.isOwn)
    }

    /// Adds `entry`. The last free place is given to the collective entry `others` instead.
    private static func add<Entry>(
        _ entry: Entry, to table: inout [Entry], others: Entry, limit: Int
    ) -> (place: Int, isOwn: Bool) {
        let isOwn = table.count < limit - 1
        if table.count < limit { table.append(isOwn ? entry : others) }
        return (table.count - 1, isOwn)
    }

    /// Forgets a loop that was deallocated: another one may get its identity.
    ///
    /// - Returns: The index of the loop, which no other loop has; nil if it had none.
    mutating func forget(_ loop: RunLoop) -> UInt16? {
        lastLoop = nil
        return loops.removeValue(forKey: ObjectIdentifier(loop))
    }

    mutating func placeOfThread() -> UInt16 {
        let serial = rondo_thread_serial()
        if let last = lastThread, last.serial == serial { return last.place }
        let thread = pthread_self()
        let last = threads[thread]
        if let last, last.serial == serial {
            lastThread = last
            return last.place
        }
        let name = cut(nameOfThisThread())
        let place: UInt16
        if let last, last.place > 0, tables.threads[Int(last.place)] == name {
            // One that has ended left its identity to another one of a pool: they share an entry.
            place = last.place
        } else {
            let added = Self.add(
                name, to: &tables.threads, others: TraceTables.others, limit: TraceTables.Limits.threads)
            place = UInt16(added.place)
        }
        // One without an entry of its own is known too, or the kernel would be asked for its name at each
        // event.
        threads[thread] = (serial, place)
        return place
    }

    mutating func place(ofMode mode: RunLoop.Mode?) -> UInt16 {
        guard let mode else { return 0 }
        let name = mode.rawValue
        if name == lastMode.name { return lastMode.place }
        let place = Self.place(
            of: name, in: &tables.modes, known: &modes, limit: TraceTables.Limits.modes)
        lastMode = (name, place)
        return place
    }

    mutating func place(ofName name: String) -> UInt16 {
        if name.isEmpty { return 0 }
        return Self.place(of: name, in: &tables.names, known: &names, limit: TraceTables.Limits.names)
    }

    /// Each label of an object has an entry: a kept connection has that of its request, and another object
    /// may get the address of a freed one.
    mutating func place(
        of object: ObjectIdentifier?, kind: TraceRecord.Kind, label: String?, loop: UInt16
    ) -> UInt32 {
        guard let object else { return 0 }
        let key = SubjectKey(object: object, kind: kind, loop: loop, label: cut(label ?? ""))
        if let last = lastSubject, last.key == key { return last.place }
        if let known = subjects[key] {
            lastSubject = (key, known)
            return known
        }
        let added = Self.add(
            TraceTables.Subject(kind: kind, label: key.label, loop: loop), to: &tables.subjects,
            others: TraceTables.Subject(kind: .mark, label: TraceTables.others, loop: 0),
            limit: TraceTables.Limits.subjects)
        let place = UInt32(added.place)
        if added.isOwn { subjects[key] = place }
        return place
    }

    private static func place(
        of name: String, in table: inout [String], known: inout [String: UInt16], limit: Int
    ) -> UInt16 {
        if let place = known[name] { return place }
        let added = add(cut(name), to: &table, others: TraceTables.others, limit: limit)
        let place = UInt16(added.place)
        if added.isOwn { known[name] = place }
        return place
    }

    // MARK: - New tables

    /// Whether entries have no room, and would have some in new tables.
    var isExhausted: Bool { tables.isFull(1) && !beganHalfFull }

    /// A transfer of entries to new tables. It has already carried the loops of living threads.
    func renewal() -> TableTransfer {
        var transfer = TableTransfer(from: tables, to: TraceTables())
        for place in loops.values.sorted() { _ = transfer.loop(place) }
        return transfer
    }

    /// Goes on with the tables of `transfer`, which have the entries that it has carried, and no others.
    mutating func renew(by transfer: TableTransfer) {
        let places = transfer.places
        tables = transfer.tables
        beganHalfFull = tables.isFull(0.5)
        lastMode = ("", 0)
        lastThread = nil
        lastLoop = nil
        lastSubject = nil
        loops = loops.compactMapValues { places.loops[Int($0)].map { UInt16($0) } }
        modes = modes.compactMapValues { places.modes[Int($0)].map { UInt16($0) } }
        names = names.compactMapValues { places.names[Int($0)].map { UInt16($0) } }
        threads = threads.compactMapValues { last in
            // One that had no entry of its own gets one.
            guard last.place < TraceTables.Limits.threads - 1 else { return nil }
            return places.threads[Int(last.place)].map { (serial: last.serial, place: UInt16($0)) }
        }
        var kept: [SubjectKey: UInt32] = [:]
        for (key, place) in subjects {
            guard let newPlace = places.subjects[Int(place)], let loop = places.loops[Int(key.loop)] else {
                continue
            }
            let newKey = SubjectKey(
                object: key.object, kind: key.kind, loop: UInt16(loop), label: key.label)
            kept[newKey] = UInt32(newPlace)
        }
        subjects = kept
    }
}

/// A name cut to the length that the tables allow.
private func cut(_ name: String) -> String {
    guard name.utf8.count > TraceTables.Limits.nameLength else { return name }
    return String(decoding: name.utf8.prefix(TraceTables.Limits.nameLength), as: UTF8.self)
}

/// Names the calling thread in the kernel, where recordings read names. Foundation's `Thread` may pass its
/// name to the kernel too late.
package func nameThisThread(_ name: String) {
    rondo_trace_set_name_of_thread(name)
}

private func nameOfThisThread() -> String {
    if Thread.isMainThread { return "main" }
    // The kernel stores 15 bytes and a zero.
    var buffer = [CChar](repeating: 0, count: 16)
    rondo_trace_name_of_thread(&buffer)
    return readable(String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
}

/// Dispatch's workers have names like com.apple.root.default-qos, of which the kernel keeps only the end.
private func readable(_ name: String) -> String {
    name.hasPrefix("oot.") ? "dispatch, " + name.dropFirst("oot.".count) : name
}
