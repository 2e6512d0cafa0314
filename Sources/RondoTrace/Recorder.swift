package import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Records the events of every run loop of the process, in a bounded amount of memory.
///
/// The newest events are kept, by default a million. An event costs its loop some hundred nanoseconds and 32
/// bytes. A thread of the recorder checks at intervals for members that are ready and held back
/// (`HeldBackEvent.all(of:)`), because no loop can notice that by itself.
///
/// Any thread may start, finish and mark. Several may record at a time, beside the program's instrument, so
/// that a program that records itself can also be recorded from outside.
package final class Recorder: RunLoop.Instrument {
    package enum Limits {
        /// The default number of events that are kept: 32 MiB.
        package static let events = 1 << 20
        /// The default number of seconds between two checks for held-back members.
        package static let lookInterval = 0.01
    }

    private struct State {
        var index = TraceIndex()
        var ring: EventRing
        /// The loops that are checked.
        var loops: [RunLoop] = []
        var spans = HeldBackSpans()
        /// The entries of the running activations of each loop, the innermost last.
        var entries: [UInt16: [TraceRecord]] = [:]
        var began: Int64
        var ended: Int64?

        /// The index of a loop, which is checked from now on.
        mutating func place(of loop: RunLoop, isOwn: Bool = false, thread: UInt16 = 0) -> UInt16 {
            let place = index.place(of: loop, isOwn: isOwn, thread: thread)
            if place.isNew { loops.append(loop) }
            return place.place
        }

        /// Records an event of a loop.
        ///
        /// - Returns: Whether the event ends a long activation.
        mutating func note(
            _ event: RunLoopEvent, of loop: RunLoop, isOwn: Bool, longActivation: Int64
        ) -> Bool {
            guard ended == nil else { return false }
            let thread = index.placeOfThread()
            let place = place(of: loop, isOwn: isOwn, thread: thread)
            var record = TraceRecord(
                kind: .entry, began: event.began, loop: place, thread: thread,
                mode: index.place(ofMode: event.mode), depth: UInt8(clamping: event.depth))
            index.complete(&record, from: event)
            ring.append(record)
            switch event.detail {
            case .entry:
                entries[place, default: []].append(record)
            case .exit:
                guard let entered = entries[place]?.popLast() else { return false }
                return event.began - entered.began >= longActivation
            case .wait, .callOut, .deferredWork, .pass, .request: break
            }
            return false
        }

        /// The beginning of a file that continues another one. It has new tables if the other file's tables
        /// would leave little room.
        mutating func beginning(at now: Int64) -> Beginning {
            let kept = index.tables.isFull(0.5) ? renew() : nil
            return Beginning(
                tables: index.tables, kept: kept, open: spans.open(at: now),
                running: entries.values.flatMap { $0 })
        }

        private mutating func renew() -> TableTransfer.Places {
            var transfer = index.renewal()
            var running: [UInt16: [TraceRecord]] = [:]
            // Loops without an entry of their own get one, and end no activation that began without.
            for (loop, records) in entries where transfer.places.loops[Int(loop)] != nil {
                running[transfer.loop(loop)] = records.map { transfer.carry($0) }
            }
            entries = running
            spans.carry(by: &transfer)
            index.renew(by: transfer)
            return transfer.places
        }
    }

    /// True in a child process that `fork` made, and that has not started another program: the threads of
    /// recorders do not exist there, and may have held their locks. Nothing is recorded then.
    static let hasForked = Atomic(false)

    /// Taken by `fork` (`startTracing`), and while loops are checked, whose locks would otherwise remain
    /// locked in the child. A semaphore, because a `Mutex` is unlocked by the function that locks it.
    static let forkLock = DispatchSemaphore(value: 1)

    private let state: Mutex<State>
    private let look: PeriodicThread
    /// The length in nanoseconds of an activation at whose end the recorder checks its loop.
    private let longActivation: Int64

    /// - Parameters:
    ///   - capacity: The number of events that are kept; the oldest are dropped first.
    ///   - lookInterval: Seconds between two checks for held-back members. A span shorter than two
    ///     intervals may be missed, except for members that are still held back at the end of a longer
    ///     activation, however late the checking thread is.
    package init(capacity: Int = Limits.events, lookInterval: Double = Limits.lookInterval) {
        state = Mutex(State(ring: EventRing(capacity: capacity), began: LoopClock.systemNow.nanoseconds))
        look = PeriodicThread(name: "rondo.recorder", interval: lookInterval)
        longActivation = LoopClock.nanoseconds(2 * lookInterval)
    }

    // MARK: - Start and end

    /// Begins to record.
    package func start() {
        state.withLock { $0.began = LoopClock.systemNow.nanoseconds }
        RunLoop.addRecorder(self)
        look.start { [weak self] in self?.lookForHeldBack() }
    }

    /// Ends the recording and returns it. Later calls return the same.
    package func finish() -> Recording {
        RunLoop.removeRecorder(self)
        look.stop()
        let now = LoopClock.systemNow.nanoseconds
        return state.withLock { state in
            if state.ended == nil {
                for record in state.spans.end(at: now) { state.ring.append(record) }
                state.ended = now
                state.loops = []
                state.entries = [:]
            }
            return Recording(
                tables: state.index.tables, records: state.ring.records, began: state.began,
                ended: state.ended ?? now, dropped: state.ring.dropped)
        }
    }

    /// The recording so far.
    package func soFar() -> Recording {
        let now = LoopClock.systemNow.nanoseconds
        return state.withLock { state in
            Recording(
                tables: state.index.tables, records: state.ring.records + state.spans.open(at: now),
                began: state.began, ended: state.ended ?? now, dropped: state.ring.dropped)
        }
    }

    /// Removes and returns the events since the last call, for a file that is written while the program runs.
    ///
    /// - Parameter isLast: Whether they are the last ones of the file, and another one continues it.
    func drain(isLast: Bool) -> Drained {
        state.withLock { state in
            // Read behind the lock: of each thread at most the event that waits for the lock began before.
            let now = LoopClock.systemNow.nanoseconds
            let tables = state.index.tables
            let records = state.ring.removeAll()
            let begun = state.spans.takeBegun()
            return Drained(
                tables: tables, records: records, begun: begun, until: now,
                next: isLast ? state.beginning(at: now) : nil)
        }
    }

    struct Drained {
        let tables: TraceTables
        let records: [TraceRecord]
        /// The spans of held-back members that have begun.
        let begun: [TraceRecord]
        let until: Int64
        let next: Beginning?
    }

    /// The beginning of a file that continues another one.
    struct Beginning {
        let tables: TraceTables
        /// The entries that the tables of the other file have, too; nil if the tables are the same.
        let kept: TableTransfer.Places?
        /// All spans of held-back members that have not ended.
        let open: [TraceRecord]
        /// The entries of all activations that have not ended, those of a loop from the outermost on.
        let running: [TraceRecord]
    }

    /// Whether loops, names or objects can no longer be told apart, and could be in another file.
    var isExhausted: Bool { state.withLock { $0.index.isExhausted } }

    /// The number of loops that the recorder remembers apart from its events.
    var loopsRemembered: Int { state.withLock { max($0.loops.count, $0.entries.count) } }

    var beganAt: Int64 { state.withLock { $0.began } }

    // MARK: - Events

    /// Records a note of the program, on the calling thread.
    package func mark(_ name: String, value: Int64 = 0) {
        let began = LoopClock.systemNow.nanoseconds
        state.withLock { state in
            guard state.ended == nil else { return }
            let thread = state.index.placeOfThread()
            state.ring.append(
                TraceRecord(
                    kind: .mark, began: began, duration: value, thread: thread,
                    name: state.index.place(ofName: name)))
        }
    }

    package func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if Self.hasForked.load(ordering: .relaxed) { return }
        let isOwn = loop.isCurrent
        let wasLong = state.withLock {
            $0.note(event, of: loop, isOwn: isOwn, longActivation: longActivation)
        }
        if wasLong { lookForHeldBack(busyLoop: loop) }
    }

    // MARK: - Held-back members

    /// Checks for held-back members and records them.
    ///
    /// - Parameter busyLoop: The loop that ends a long activation on the calling thread; only it is
    ///   checked. Nil means all loops.
    func lookForHeldBack(busyLoop: RunLoop? = nil) {
        var members: [Any] = []
        // Checks are recorded in the order in which they are made.
        Self.forkLock.wait()
        lookAndNote(busyLoop: busyLoop, keeping: &members)
        Self.forkLock.signal()
        // Behind the lock: the last release of a member runs code of the program, which may fork.
        withExtendedLifetime(members) {}
    }

    private func lookAndNote(busyLoop: RunLoop?, keeping members: inout [Any]) {
        let loops = busyLoop.map { [$0] } ?? state.withLock { $0.loops }
        members.append(loops)
        let found = loops.map {
            (loop: $0, isAlive: $0.isAlive, held: HeldBackEvent.all(of: $0, keeping: &members))
        }
        let now = LoopClock.systemNow.nanoseconds
        state.withLock { state in
            guard state.ended == nil else { return }
            var seen: [HeldBackSpans.Held] = []
            let busyPlace = busyLoop.map { state.place(of: $0) }
            for entry in found {
                guard entry.isAlive else {
                    state.loops.removeAll { $0 === entry.loop }
                    if let place = state.index.forget(entry.loop) { state.entries[place] = nil }
                    continue
                }
                let loop = state.place(of: entry.loop)
                for held in entry.held {
                    let kind = TraceRecord.Kind(held.kind)
                    seen.append(
                        HeldBackSpans.Held(
                            loop: loop, mode: state.index.place(ofMode: held.mode), kind: kind,
                            subject: state.index.place(
                                of: held.kind.hasSubject || held.label != nil ? held.subject : nil,
                                kind: kind, label: held.label,
                                loop: loop),
                            since: held.since))
                }
            }
            let over = state.spans.look(seen, at: now, notBefore: state.began, busyLoop: busyPlace)
            for record in over { state.ring.append(record) }
        }
    }
}

extension RunLoopEvent.CallOut {
    /// False for blocks without a label, which have no identity, and for the main queue, of which there is
    /// only one.
    fileprivate var hasSubject: Bool {
        switch self {
        case .block, .mainQueue: false
        case .observer, .signalledSource, .descriptorSource, .timer, .delegate, .notification: true
        }
    }
}

extension TraceIndex {
    /// Adds the kind and details of `event`; time, place and depth are set already.
    fileprivate mutating func complete(_ record: inout TraceRecord, from event: RunLoopEvent) {
        switch event.detail {
        case .entry: break
        case .exit(let result):
            record.kind = .exit
            record.detail = UInt8(clamping: result.rawValue)
        case .wait(let nanoseconds):
            record.kind = .wait
            record.duration = nanoseconds
        case .deferredWork(let count, let nanoseconds):
            record.kind = .deferredWork
            record.duration = nanoseconds
            record.detail = UInt8(clamping: count)
        case .pass(let activities, let nanoseconds):
            record.kind = .pass
            record.duration = nanoseconds
            record.detail = UInt8(truncatingIfNeeded: activities.rawValue)
        case .request(let request, let label):
            record.kind = TraceRecord.Kind(request)
            record.name = place(ofName: label ?? "")
        case .callOut(let callOut, let label, let nanoseconds):
            record.kind = TraceRecord.Kind(callOut)
            record.duration = nanoseconds
            record.subject = place(of: event.subject, kind: record.kind, label: label, loop: record.loop)
            switch callOut {
            case .observer(let activity): record.detail = UInt8(truncatingIfNeeded: activity.rawValue)
            case .descriptorSource(let interest): record.detail = interest.rawValue
            case .delegate(let name), .notification(let name): record.name = place(ofName: name)
            case .block, .signalledSource, .timer, .mainQueue: break
            }
        }
    }
}

/// A ring of the newest events.
struct EventRing {
    private let capacity: Int
    private var events: [TraceRecord] = []
    /// The index of the oldest event, once the ring is full.
    private var first = 0
    /// The number of events that were overwritten.
    private(set) var dropped = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    mutating func append(_ record: TraceRecord) {
        guard events.count == capacity else {
            events.append(record)
            return
        }
        events[first] = record
        first = first + 1 == capacity ? 0 : first + 1
        dropped += 1
    }

    /// The events, oldest first.
    var records: [TraceRecord] { Array(events[first...] + events[..<first]) }

    mutating func removeAll() -> [TraceRecord] {
        defer {
            events.removeAll(keepingCapacity: true)
            first = 0
        }
        return records
    }
}
