import Rondo
import RondoTestSupport
import RondoTrace

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
    static let inner = RunLoop.Mode("inner")
}

/// Recordings made by hand, of one loop on one thread.
struct RecordingMaker {
    var tables = TraceTables()
    var records: [TraceRecord] = []

    init() {
        tables.threads += ["worker", "other"]
        tables.loops.append(TraceTables.Loop(name: "worker", thread: 1))
        tables.modes += [
            RunLoop.Mode.default.rawValue, RunLoop.Mode.tracking.rawValue, "private",
        ]
        tables.names += ["noted"]
        tables.subjects += [
            TraceTables.Subject(kind: .timer, label: "beat", loop: 1),
            TraceTables.Subject(kind: .descriptorSource, label: "</script><b>", loop: 1),
        ]
    }

    mutating func add(
        _ kind: TraceRecord.Kind, _ began: Int64, _ duration: Int64 = 0, mode: UInt16 = 1,
        subject: UInt32 = 0,
        name: UInt16 = 0, depth: UInt8 = 1, detail: UInt8 = 0, thread: UInt16 = 1, loop: UInt16 = 1
    ) {
        records.append(
            TraceRecord(
                kind: kind, began: began, duration: duration, loop: loop, thread: thread, mode: mode,
                subject: subject, name: name, depth: depth, detail: detail))
    }

    func recording(began: Int64 = 0, ended: Int64 = 1_000_000, dropped: Int = 0) -> Recording {
        Recording(tables: tables, records: records, began: began, ended: ended, dropped: dropped)
    }

    /// One of each: a pass with deferred work and a timer, a nested run, requests, a note, a span held back.
    static var sample: Recording {
        var maker = RecordingMaker()
        maker.add(.entry, 1_000)
        maker.add(.pass, 1_100, 400_000, detail: 2 | 4 | 32 | 64)
        maker.add(.observer, 1_200, 50, detail: 2)
        maker.add(.wait, 2_000, 200_000)
        maker.add(.deferredWork, 1_500, 300, detail: 2)
        maker.add(.timer, 210_000, 150_000, subject: 1)
        maker.add(.entry, 220_000, mode: 3, depth: 2)
        maker.add(.exit, 300_000, mode: 3, depth: 2, detail: 2)
        maker.add(.heldBack, 215_000, 90_000, subject: 2, detail: TraceRecord.Kind.descriptorSource.rawValue)
        maker.add(.exit, 402_000, detail: 3)
        maker.add(.stop, 500_000, mode: 0, depth: 0, thread: 2)
        maker.add(.mark, 600_000, 42, mode: 0, name: 1, depth: 0, thread: 2, loop: 0)
        return maker.recording()
    }
}

/// Records while `body` runs.
func recording(
    capacity: Int = 1 << 16, lookInterval: Double = 0.001, _ body: (Recorder) throws -> Void
) rethrows -> Recording {
    try InstrumentTurn.take {
        let recorder = Recorder(capacity: capacity, lookInterval: lookInterval)
        recorder.start()
        defer { _ = recorder.finish() }
        try body(recorder)
        return recorder.finish()
    }
}
