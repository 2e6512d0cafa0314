import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoTrace

/// Tests what a recorder keeps and writes, by its own means.
struct RecorderMemoryTests {
    @Test func `a recorder keeps only the events of a loop whose thread has ended`() throws {
        // An instrument of no loop: it hears of this loop alone.
        let recorder = Recorder()
        let thread = LoopThread { loop in
            for detail in [RunLoopEvent.Detail.entry, .exit(.finished), .entry] {
                recorder.runLoop(
                    loop, did: RunLoopEvent(detail: detail, began: 0, mode: .default, depth: 1, subject: nil))
            }
        }
        try thread.value()
        #expect(recorder.loopsRemembered == 1)
        recorder.lookForHeldBack()
        #expect(recorder.loopsRemembered == 0)
        #expect(recorder.soFar().records.map(\.loop) == [1, 1, 1])
    }

    /// As the `deinit` of a member does that the recorder's thread releases, and that ends the process.
    @Test func `the recorder's thread does not wait for itself if what it calls stops it`() throws {
        let thread = PeriodicThread(name: "test", interval: 0.001)
        let stopped = Latch()
        thread.start {
            thread.stop()
            stopped.open()
        }
        try stopped.wait()
    }

    @Test func `requests to a loop whose thread has ended take no place in the tables`() throws {
        let recorder = Recorder()
        let thread = LoopThread { _ in }
        let loop = try thread.loop
        try thread.value()
        for _ in 1...3 {
            recorder.runLoop(
                loop,
                did: RunLoopEvent(
                    detail: .request(.stop, label: nil), began: 0, mode: nil, depth: 0, subject: nil))
            recorder.lookForHeldBack()
        }
        #expect(recorder.soFar().tables.loops.count == 1)
        #expect(recorder.soFar().records.map(\.loop) == [0, 0, 0])
    }

    @Test func `new tables have the loops whose threads live, and room for other names`() throws {
        let recorder = Recorder()
        let note = { @Sendable (loop: RunLoop, detail: RunLoopEvent.Detail) in
            recorder.runLoop(
                loop, did: RunLoopEvent(detail: detail, began: 0, mode: .default, depth: 1, subject: nil))
        }
        for _ in 1...3 { try onLoopThread { note($0, .entry) } }
        recorder.lookForHeldBack()
        for number in 0..<(TraceTables.Limits.names / 2) { recorder.mark("name \(number)") }
        try onLoopThread { loop in
            note(loop, .entry)
            let last = recorder.drain(isLast: true)
            #expect(last.tables.loops.count == 5)
            #expect(last.next?.tables.loops.count == 2 && last.next?.tables.names.count == 1)
            #expect(last.next?.kept?.loops == [0: 0, 4: 1])
            #expect(last.next?.running.map(\.loop) == [1] && last.next?.running.map(\.thread) == [1])
            // The loop and its thread are known by their new places.
            note(loop, .exit(.finished))
            let next = recorder.drain(isLast: true)
            #expect(next.records.map(\.loop) == [1] && next.records.map(\.thread) == [1])
            #expect(next.records.map(\.mode) == [1] && next.tables.modes.count == 2)
            // Tables with room are those of the next file as well.
            #expect(next.next?.kept == nil && next.next?.tables == next.tables)
            #expect(next.next?.running.isEmpty == true)
        }
    }

    @Test func `an object has one entry for each of its labels, in whatever turns it has them`() {
        var index = TraceIndex()
        let object = ObjectIdentifier(NSObject())
        let long = String(repeating: "x", count: 2 * TraceTables.Limits.nameLength)
        let labels: [String?] = ["a", "b", "a", "b", long, long, nil, nil]
        let places = labels.map { index.place(of: object, kind: .descriptorSource, label: $0, loop: 1) }
        #expect(places == [1, 2, 1, 2, 3, 3, 4, 4])
        #expect(index.tables.subjects.count == 5)
    }

    @Test func `a member with a long label is known again by the next check`() throws {
        let recorder = Recorder()
        let held = try onLoopThread { loop -> Int in
            let timer = Timer(fire: Date(timeIntervalSinceNow: -1), interval: 0, repeats: false) { _ in }
            timer.label = String(repeating: "x", count: 2 * TraceTables.Limits.nameLength)
            loop.add(timer, forMode: RunLoop.Mode("work"))
            recorder.runLoop(
                loop, did: RunLoopEvent(detail: .entry, began: 0, mode: .default, depth: 1, subject: nil))
            for _ in 1...3 { recorder.lookForHeldBack() }
            return recorder.soFar().records.count { $0.kind == .heldBack }
        }
        #expect(held == 1)
    }

    /// As a rule each has the identity of the one before, for which the system keeps the stack.
    @Test func `a thread has its own name, and not that of one that has ended`() throws {
        let recorder = Recorder()
        let names = (0..<20).map { "test thread \($0)" }
        for name in names {
            try onLoopThread { _ in
                nameThisThread(name)
                recorder.mark("note")
            }
        }
        let recording = recorder.soFar()
        #expect(recording.records.map { recording.threadName($0.thread) } == names)
    }

    @Test func `a loop with a clock of its own is recorded in the machine's time`() throws {
        let mode = RunLoop.Mode("stopped clock")
        let found: Recording = try InstrumentTurn.take {
            let recorder = Recorder()
            recorder.start()
            try onLoopThread { loop in
                LoopClock.setTimeSource(StoppedClock())
                defer { LoopClock.setTimeSource(nil) }
                recorder.mark("note of a stopped clock")
                loop.perform(inModes: [mode]) {}
                _ = loop.run(in: mode, for: 0, returnAfterSourceHandled: false)
            }
            return recorder.finish()
        }
        let own = found.records.filter {
            found.modeName($0) == mode.rawValue || found.name($0) == "note of a stopped clock"
        }
        let kinds: Set<TraceRecord.Kind> = [.mark, .perform, .entry, .block, .pass, .exit]
        #expect(kinds.isSubset(of: own.map(\.kind)))
        #expect(own.allSatisfy { $0.began >= found.began && $0.ended <= found.ended })
    }
}

private final class StoppedClock: LoopTimeSource {
    let now = LoopInstant(nanoseconds: 5)

    func loopIsIdle(until instant: LoopInstant) -> Bool { false }
}
