import Foundation
import RondoLab
import RondoTestSupport
import RondoTrace
import Testing

struct RecordingTests {
    // MARK: The file

    private func file(_ recording: Recording) -> [UInt8] {
        var encoder = TraceEncoder()
        return TraceEncoder.head(began: recording.began) + encoder.frames(recording.tables, recording.records)
            + TraceEncoder.end(recording.ended, dropped: recording.dropped)
    }

    @Test func `a recording that is read from its file equals the recording that was written`() throws {
        var sample = RecordingMaker.sample
        sample.dropped = 7
        #expect(try Recording(file: file(sample)) == sample)
    }

    @Test func `in a file that is written in pieces, a loop whose thread is found late stays one loop`()
        throws
    {
        let sample = RecordingMaker.sample
        var early = sample.tables
        early.loops[1].thread = 0
        early.threads.removeLast()
        var encoder = TraceEncoder()
        let bytes =
            TraceEncoder.head(began: 0) + encoder.frames(early, Array(sample.records.prefix(3)))
            + encoder.frames(sample.tables, Array(sample.records.dropFirst(3)))
            + TraceEncoder.end(sample.ended, dropped: 0)
        #expect(try Recording(file: bytes) == sample)
    }

    @Test func `a span that a killed program did not end lasts to the end of the file`() throws {
        let sample = RecordingMaker.sample
        let held = try #require(sample.records.first { $0.kind == .heldBack })
        var begun = held
        begun.duration = 0
        var encoder = TraceEncoder()
        let head = TraceEncoder.head(began: 0)
        let killed =
            head
            + encoder.frames(
                sample.tables, sample.records.filter { $0.kind != .heldBack }, begun: [begun], until: 900_000)
        let found = try Recording(file: killed)
        #expect(found.ended == 900_000)
        #expect(found.records.first { $0.kind == .heldBack }?.ended == 900_000)
        // One that has ended is itself, once.
        let ended = try Recording(
            file: killed + encoder.frames(sample.tables, [held]) + TraceEncoder.end(sample.ended, dropped: 0))
        #expect(ended.records.filter { $0.kind == .heldBack } == [held])
    }

    /// As many as a day's recording has. Read in a time that grows with their square it would take hours.
    @Test(.timeLimit(.minutes(2)))
    func `a long recording is read and drawn in a time that grows with its length`() throws {
        let count = 100_000
        var tables = TraceTables()
        var encoder = TraceEncoder()
        for index in 1..<4_000 { tables.loops.append(.init(name: "l\(index)", thread: 0)) }
        tables.modes.append("mode")
        for index in 1..<30_000 { tables.subjects.append(.init(kind: .timer, label: "s\(index)", loop: 1)) }
        var bytes = TraceEncoder.head(began: 0) + encoder.frames(tables, [])
        // All is said of the tables.
        encoder = TraceEncoder()
        tables = TraceTables()
        _ = encoder.frames(tables, [])
        for index in 0..<count {
            let began = Int64(index) * 10
            // A frame each, as of a program that does little at a time.
            bytes += encoder.frames(
                tables,
                [
                    TraceRecord(kind: .entry, began: began, loop: 1, mode: 1),
                    TraceRecord(kind: .heldBack, began: began, duration: 100, loop: 1, mode: 1),
                    TraceRecord(
                        kind: .timer, began: began, duration: 5, loop: 1, mode: 1,
                        subject: UInt32(index % 30_000)),
                ])
        }
        let recording = try Recording(file: bytes)
        #expect(recording.records.count == 3 * count)
        #expect(recording.records.first { $0.kind == .heldBack }?.duration == 10)
        let terminal = Terminal(descriptor: 2, isTerminal: false, environment: [:])
        let lines = TextTimeline(recording, terminal: terminal, width: 80).lines
        #expect(lines.contains { $0.contains("… and 29988 more") }, "\(lines.prefix(30))")
    }

    @Test func `a file that breaks off yields its whole frames`() throws {
        let sample = RecordingMaker.sample
        let bytes = file(sample)
        for length in TraceEncoder.magic.count...bytes.count {
            let found = try Recording(file: Array(bytes.prefix(length)))
            #expect(found.records.isEmpty || found.records == sample.records)
            #expect(found.isComplete == (length == bytes.count))
            #expect(try Recording(file: found.file) == found)
        }
        #expect(throws: TraceFileError.notARecording) { try Recording(file: Array(bytes.prefix(5))) }
        #expect(throws: TraceFileError.notARecording) { try Recording(file: Array("GET / HTTP/1.1".utf8)) }
    }

    /// Place 0 stands for nothing; and of the moments that a file names no sum may be beyond what another file could name.
    @Test func `a file that sets index 0, or has a time out of range, is damaged`() throws {
        let limit = Int64(1) << 61
        let head = TraceEncoder.head(began: 0)
        for type in ["L", "T", "M", "N", "S"] {
            let payload: [UInt8] = type == "S" ? [0, 0, 0, 0, 9, 0, 0, 65] : [0, 0, 0, 0, 65]
            let frame = Array(type.utf8) + [UInt8(payload.count), 0, 0, 0] + payload
            #expect(throws: TraceFileError.damaged(offset: head.count)) { try Recording(file: head + frame) }
        }
        for (began, duration, isSound) in [
            (limit, 0, true), (limit - 1, 1, true), (limit, 1, false), (1, limit, false),
        ] {
            var encoder = TraceEncoder()
            let record = TraceRecord(kind: .timer, began: began, duration: duration)
            let bytes = head + encoder.frames(TraceTables(), [record])
            guard isSound else {
                #expect(throws: TraceFileError.damaged(offset: head.count)) { try Recording(file: bytes) }
                continue
            }
            let recording = try Recording(file: bytes)
            #expect(try Recording(file: recording.file) == recording)
        }
    }

    @Test func `where the later file is empty the earlier one is read`() throws {
        let sample = RecordingMaker.sample
        var encoder = TraceEncoder()
        let earlier =
            TraceEncoder.head(began: 0) + encoder.frames(sample.tables, sample.records, until: 900_000)
        let found = try Recording(file: [], continuing: earlier)
        #expect(found.records == sample.records && found.ended == 900_000 && !found.isComplete)
        #expect(throws: TraceFileError.notARecording) { try Recording(file: [], continuing: [1, 2, 3]) }
        #expect(throws: TraceFileError.notARecording) { try Recording(file: []) }
    }

    @Test func `a file that continues another one with other tables has its loops, threads and modes`()
        throws
    {
        var maker = RecordingMaker()
        maker.add(.entry, 100)
        maker.add(.timer, 200, 10, subject: 1)
        var encoder = TraceEncoder()
        let earlier =
            TraceEncoder.head(began: 0) + encoder.frames(maker.tables, maker.records, until: 1_000)
        // Another loop and another object come first; the loop and the thread of before are known, the mode is by name.
        var tables = TraceTables()
        tables.threads += ["newcomer", "worker"]
        tables.loops += [.init(name: "newcomer", thread: 1), .init(name: "worker", thread: 2)]
        tables.modes += ["new", RunLoop.Mode.default.rawValue]
        tables.subjects += [.init(kind: .timer, label: "late", loop: 2)]
        var places = TableTransfer.Places()
        places.loops[1] = 2
        places.threads[1] = 2
        encoder = TraceEncoder()
        let records = [
            TraceRecord(
                kind: .timer, began: 1_100, duration: 10, loop: 2, thread: 2, mode: 2, subject: 1, depth: 1),
            TraceRecord(kind: .exit, began: 1_200, loop: 2, thread: 2, mode: 2, depth: 1, detail: 3),
            TraceRecord(kind: .entry, began: 1_300, loop: 1, thread: 1, mode: 1, depth: 1),
        ]
        let later =
            TraceEncoder.head(began: 1_000) + TraceEncoder.kept(places) + encoder.frames(tables, [])
            + TraceEncoder.running([TraceRecord(kind: .entry, began: 100, loop: 2)], at: 1_000)
            + encoder.frames(tables, records) + TraceEncoder.end(2_000, dropped: 0)
        let both = try Recording(file: later, continuing: earlier)
        #expect(both.tables.loops.map(\.name) == ["", "worker", "newcomer"])
        #expect(both.records.map(\.loop) == [1, 1, 1, 1, 2])
        #expect(both.records.map { both.threadName($0.thread) }.last == "newcomer")
        #expect(both.records.map { both.modeName($0) }.suffix(2) == ["default", "new"])
        #expect(both.tables.modes.count == 5)
        #expect(both.records.filter { $0.kind == .timer }.map { both.label($0) } == ["beat", "late"])
        #expect(both.activations.map(\.ended) == [1_200, 2_000])
        #expect(try Recording(file: both.file) == both)
        // Alone it is what it says.
        let alone = try Recording(file: later)
        #expect(alone.records.map { alone.loopName($0.loop) } == ["worker", "worker", "worker", "newcomer"])
    }

    @Test func `an activation of a loop without an entry of its own is not longer than its file`() throws {
        var maker = RecordingMaker()
        maker.add(.entry, 100)
        var encoder = TraceEncoder()
        let earlier =
            TraceEncoder.head(began: 0) + encoder.frames(maker.tables, maker.records, until: 1_000)
        // The later file does not say which of the loops before this one is.
        maker.records = []
        maker.add(.exit, 1_200, mode: 2, depth: 2, detail: 3)
        maker.add(.exit, 1_300, detail: 3)
        encoder = TraceEncoder()
        let later =
            TraceEncoder.head(began: 1_000) + TraceEncoder.kept(TableTransfer.Places())
            + encoder.frames(maker.tables, maker.records) + TraceEncoder.end(2_000, dropped: 0)
        let both = try Recording(file: later, continuing: earlier)
        #expect(both.activations.map(\.began) == [100, 1_000, 1_000])
        #expect(Set(both.activations.map(\.ended)) == [1_000, 1_200, 1_300])
        #expect(both.activations.first { $0.depth == 2 }?.mode == 2)
    }

    @Test func `no damage of a file traps, and every view of the recording works`() {
        let sample = RecordingMaker.sample
        // Two files, of which the second continues the first, and has all types of frames.
        var encoder = TraceEncoder()
        let earlier =
            TraceEncoder.head(began: 0)
            + encoder.frames(sample.tables, sample.records, until: 250_000)
        encoder = TraceEncoder()
        let later =
            TraceEncoder.head(began: 250_000) + keptFrames
            + encoder.frames(
                sample.tables, sample.records, begun: sample.records.filter { $0.kind == .heldBack },
                until: 900_000)
            + TraceEncoder.running(sample.records.filter { $0.kind == .entry }, at: 250_000)
            + TraceEncoder.end(sample.ended, dropped: 0)
        for place in earlier.indices {
            for bytes in damaged(earlier, at: place) { view(later, continuing: bytes) }
        }
        for place in later.indices {
            for bytes in damaged(later, at: place) {
                view(bytes)
                view(bytes, continuing: earlier)
            }
        }
    }

    /// Of tables that begin anew with the first loop, thread and object of those before.
    private var keptFrames: [UInt8] {
        var places = TableTransfer.Places()
        places.loops[1] = 1
        places.threads[1] = 1
        places.subjects[1] = 1
        return TraceEncoder.kept(places)
    }

    private func damaged(_ bytes: [UInt8], at place: Int) -> [[UInt8]] {
        [0, 1, 0x7F, 0xFF].map { (value: UInt8) in
            var bytes = bytes
            bytes[place] = value
            return bytes
        }
    }

    private func view(_ file: [UInt8], continuing earlier: [UInt8]? = nil) {
        guard let found = try? Recording(file: file, continuing: earlier) else { return }
        for record in found.records {
            _ = (found.modeName(record), found.name(record), found.label(record))
            _ = (found.threadName(record.thread), found.loopName(record.loop))
        }
        _ = (found.chromeTrace, found.pageData, found.activations)
    }

    // MARK: Spans held back

    @Test func `an object held back at the end of a long run in another mode needs to be seen only once`() {
        var spans = HeldBackSpans()
        #expect(spans.look([held(1)], at: 100, notBefore: 0, busyLoop: 2).isEmpty)
        // Of another loop nothing is known.
        #expect(spans.open(at: 150).isEmpty)
        // Nor does a look at another loop count, which may come at once after the first.
        #expect(spans.look([], at: 151, notBefore: 0, busyLoop: 2).isEmpty)
        #expect(spans.open(at: 160).isEmpty)
        #expect(spans.look([held(1)], at: 200, notBefore: 0).isEmpty)
        #expect(spans.takeBegun().map(\.began) == [100])
        spans = HeldBackSpans()
        #expect(spans.look([held(1)], at: 100, notBefore: 0, busyLoop: 1).isEmpty)
        #expect(spans.takeBegun().map(\.began) == [100])
        #expect(spans.look([], at: 300, notBefore: 0).map(\.duration) == [200])
    }

    private func held(_ subject: UInt32, since: Int64? = nil) -> HeldBackSpans.Held {
        HeldBackSpans.Held(loop: 1, mode: 1, kind: .timer, subject: subject, since: since)
    }

    @Test func `a span must be seen in two checks, and ends with the first check that misses it`() {
        var spans = HeldBackSpans()
        #expect(spans.look([held(1), held(2, since: 50)], at: 100, notBefore: 0).isEmpty)
        #expect(spans.look([held(2, since: 50)], at: 200, notBefore: 0).isEmpty)
        let over = spans.look([], at: 300, notBefore: 0)
        #expect(over.map(\.subject) == [2])
        #expect(over.map(\.began) == [50] && over.map(\.duration) == [250])
        // Its beginning is told once, when it is certain.
        #expect(spans.takeBegun().map(\.subject) == [2] && spans.takeBegun().isEmpty)
        #expect(spans.end(at: 400).isEmpty)
    }

    @Test func `a span that began after a look at the clock has no length`() {
        var spans = HeldBackSpans()
        _ = spans.look([held(1)], at: 200, notBefore: 0, busyLoop: 1)
        #expect(spans.open(at: 100).map(\.duration) == [0])
    }

    @Test func `a span ends when its mode begins to run`() {
        var maker = RecordingMaker()
        maker.add(.heldBack, 100, 500)
        maker.add(.entry, 300, mode: 2)
        maker.add(.entry, 400, mode: 1)
        let recording = maker.recording()
        #expect(recording.records.first { $0.kind == .heldBack }?.duration == 300)
    }

    @Test func `a span that was shortened is behind a longer one that begins with it`() throws {
        var maker = RecordingMaker()
        maker.add(.heldBack, 100, 500, mode: 1)
        maker.add(.heldBack, 100, 400, mode: 2)
        maker.add(.entry, 300, mode: 1)
        let recording = maker.recording()
        #expect(recording.records.map(\.duration) == [400, 200, 0])
        #expect(try Recording(file: recording.file) == recording)
    }

    // MARK: Chrome's format

    private struct ChromeEvent: Decodable {
        var name: String
        var ph: String
        var ts: Double?
        var dur: Double?
        var tid: Int
        var id: Int?
    }

    private struct ChromeFile: Decodable {
        var traceEvents: [ChromeEvent]
    }

    @Test func `a trace for Perfetto nests on each thread, and each begun span has its end`() throws {
        let text = RecordingMaker.sample.chromeTrace
        let events = try JSONDecoder().decode(ChromeFile.self, from: Data(text.utf8)).traceEvents
        #expect(events.contains { $0.ph == "M" && $0.name == "thread_name" })
        for thread in Set(events.map(\.tid)) {
            var open: [Double] = []
            for event in events.filter({ $0.ph == "X" && $0.tid == thread }).sorted(by: {
                ($0.ts ?? 0, -($0.dur ?? 0)) < ($1.ts ?? 0, -($1.dur ?? 0))
            }) {
                let (from, to) = (event.ts ?? 0, (event.ts ?? 0) + (event.dur ?? 0))
                while let last = open.last, last <= from { open.removeLast() }
                #expect(to <= (open.last ?? .infinity) + 1e-6, "\(event)")
                open.append(to)
            }
        }
        #expect(
            Set(events.filter { $0.ph == "b" }.map(\.id)) == Set(events.filter { $0.ph == "e" }.map(\.id)))
        #expect(events.filter { $0.ph == "i" }.map(\.name) == ["stop", "noted"])
        #expect(events.contains { $0.name == "running in private" && $0.dur == 80 })
    }

    // MARK: The page

    @Test func `the page is one file that loads nothing, and no label can end its script`() {
        let page = TracePage.html(RecordingMaker.sample, title: "a <title> & more")
        for forbidden in ["http://", "https://", "src=", "@import", "url(", "<link", "</script><b>"] {
            #expect(!page.contains(forbidden), "\(forbidden)")
        }
        #expect(page.contains("<title>a &lt;title&gt; &amp; more</title>"))
    }
}
