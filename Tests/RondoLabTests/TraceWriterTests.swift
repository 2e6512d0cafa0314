import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoTrace

/// The files that a recorded program writes.
struct TraceWriterTests {
    /// With notes, of which each is written at once: 50 bytes. The recorder hears of no loop by itself.
    @Test func `a recording takes a bounded space, and its newest events can be read`() throws {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer { for path in [file, file + ".1"] { unlink(path) } }
        let read = { (path: String) in Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
        let limit = 100 * TraceRecord.encodedSize
        let writer = try TraceWriter(path: file, maximumLength: limit)
        try onLoopThread { loop in
            writer.recorder.runLoop(
                loop,
                did: RunLoopEvent(
                    detail: .entry, began: LoopClock.systemNow.nanoseconds, mode: .default, depth: 1,
                    subject: nil))
        }
        for number in Int64(0)..<1_000 {
            writer.recorder.mark("note", value: number)
            writer.flush()
            // Beside the events: a head, the tables, the activation, and what the last flush adds.
            let length = try read(file).count
            try #require(length < limit + 500)
        }
        writer.finish()

        let alone = try Recording(file: read(file))
        let both = try Recording(file: read(file), continuing: read(file + ".1"))
        for (recording, least) in [(alone, 1), (both, limit / 50)] {
            let marks = recording.records.filter { $0.kind == .mark }
            #expect(marks.count >= least && marks.count < 1_000)
            #expect(marks.map(\.duration) == Array(Int64(1_000 - marks.count)..<1_000))
            #expect(marks.allSatisfy { recording.name($0) == "note" })
            // The activation that runs all the time is known in every file.
            #expect(recording.activations.count == 1)
            #expect(recording.activations.first?.began == recording.began)
            #expect(recording.isComplete)
        }
        #expect(both.began < alone.began)
        // What another program has left there is no part of it.
        var stranger = TraceEncoder()
        let other = TraceEncoder.head(began: 0) + stranger.frames(TraceTables(), [], until: 1)
        #expect(try Recording(file: read(file), continuing: other) == alone)
        #expect(try Recording(file: read(file), continuing: [1, 2, 3]) == alone)
    }

    /// They are recorded when they end. An event may also wait for the recorder while the file is changed.
    @Test func `of spans that began before the file it has the rest`() throws {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer { for path in [file, file + ".1"] { unlink(path) } }
        let read = { (path: String) in Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
        // Every write changes the file.
        let writer = try TraceWriter(path: file, maximumLength: 1)
        let (began, ended) = try onLoopThread { loop in
            let note = { (detail: RunLoopEvent.Detail, began: Int64) in
                writer.recorder.runLoop(
                    loop,
                    did: RunLoopEvent(detail: detail, began: began, mode: .default, depth: 1, subject: nil))
            }
            let began = LoopClock.systemNow.nanoseconds
            note(.entry, began)
            writer.flush()
            let ended = LoopClock.systemNow.nanoseconds
            note(.wait(nanoseconds: ended - began - 2), began + 1)
            note(.callOut(.timer, label: nil, nanoseconds: ended - began), began)
            note(.exit(.stopped), began + 1)
            return (began, ended)
        }
        writer.finish()

        let alone = try Recording(file: read(file))
        #expect(alone.began > began)
        #expect(alone.records.map(\.kind) == [.entry, .timer, .wait, .exit])
        #expect(alone.records.allSatisfy { $0.began == alone.began })
        #expect(alone.records.map(\.ended) == [alone.began, ended, ended - 1, alone.began])
        #expect(alone.activations.map(\.result) == [.stopped])
        #expect(alone.activations.allSatisfy { $0.ended == alone.began })
        #expect(try Recording(file: alone.file) == alone)
        // With the file before they are whole.
        let both = try Recording(file: read(file), continuing: read(file + ".1"))
        #expect(both.records.map(\.began) == [began, began, began + 1, began + 1])
    }

    /// As of a service that gets requests for as many paths.
    @Test func `a recording in which labels have run out goes on with new ones, and is read with them`()
        throws
    {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer { for path in [file, file + ".1"] { unlink(path) } }
        let read = { (path: String) in Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
        let writer = try TraceWriter(path: file)
        try onLoopThread { loop in
            let object = NSObject()
            let note = { (detail: RunLoopEvent.Detail) in
                writer.recorder.runLoop(
                    loop,
                    did: RunLoopEvent(
                        detail: detail, began: LoopClock.systemNow.nanoseconds, mode: .default, depth: 1,
                        subject: ObjectIdentifier(object)))
            }
            note(.entry)
            for number in 0...TraceTables.Limits.subjects {
                note(.callOut(.timer, label: "job \(number)", nanoseconds: 1))
            }
            writer.flush()
            note(.callOut(.timer, label: "the last job", nanoseconds: 1))
            note(.exit(.stopped))
        }
        writer.finish()

        let labels = { (recording: Recording) in
            recording.records.filter { $0.kind == .timer }.map { recording.label($0) }
        }
        let alone = try Recording(file: read(file))
        #expect(labels(alone) == ["the last job"])
        let both = try Recording(file: read(file), continuing: read(file + ".1"))
        // The first entry of a table stands for none, and the last one for the others.
        let named = TraceTables.Limits.subjects - 2
        let all = labels(both)
        #expect(all.count == TraceTables.Limits.subjects + 2)
        #expect(Array(all.prefix(named)) == (0..<named).map { "job \($0)" })
        let others = Array(repeating: "others, beyond the limit", count: 3)
        #expect(Array(all.dropFirst(named)) == others + ["the last job"])
        for recording in [alone, both] {
            #expect(recording.isComplete && recording.tables.loops.count == 2)
            #expect(recording.activations.map(\.result) == [.stopped])
        }
    }

    @Test func `a recording that is full and cannot be renamed begins anew in its file`() throws {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer {
            unlink(file)
            rmdir(file + ".1")
        }
        try #require(mkdir(file + ".1", 0o755) == 0)
        let writer = try TraceWriter(path: file, maximumLength: 1)
        for number in Int64(0)..<3 {
            writer.flush()
            writer.recorder.mark("note", value: number)
        }
        writer.finish()
        let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        #expect(recording.isComplete && recording.records.map(\.duration) == [2])
    }

    @Test func `a recording that is full, where there can be no further file, leaves the earlier one`() throws
    {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer {
            for path in [file, file + ".1"] { unlink(path) }
            rmdir(file + ".next")
        }
        try Data("earlier".utf8).write(to: URL(fileURLWithPath: file + ".1"))
        try #require(mkdir(file + ".next", 0o755) == 0)
        let writer = try TraceWriter(path: file, maximumLength: 1)
        writer.flush()
        writer.recorder.mark("note", value: 7)
        writer.finish()
        #expect(try String(contentsOfFile: file + ".1", encoding: .utf8) == "earlier")
        let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        #expect(recording.isComplete && recording.records.map(\.duration) == [7])
    }

    @Test func `a file in the place of a recording that was moved is not touched`() throws {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        defer { for path in [file, file + ".1", file + ".moved"] { unlink(path) } }
        let writer = try TraceWriter(path: file, maximumLength: 1)
        try #require(rename(file, file + ".moved") == 0)
        try Data("a stranger's".utf8).write(to: URL(fileURLWithPath: file))
        writer.flush()
        writer.recorder.mark("note", value: 7)
        writer.finish()
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "a stranger's")
        #expect(!FileManager.default.fileExists(atPath: file + ".1"))
        let moved = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file + ".moved"))))
        #expect(moved.isComplete && moved.records.map(\.duration) == [7])
    }

    @Test func `of a recording by a symbolic link the file is renamed, and not the link`() throws {
        let file = NSTemporaryDirectory() + "/rondo-writer-\(UUID().uuidString)"
        let link = file + "-link"
        defer { for path in [file, file + ".1", link, link + ".1"] { unlink(path) } }
        try #require(symlink(file, link) == 0)
        let writer = try TraceWriter(path: link, maximumLength: 1)
        writer.recorder.mark("note", value: 1)
        writer.flush()
        writer.recorder.mark("note", value: 2)
        writer.finish()
        let read = { (path: String) in Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
        let recording = try Recording(file: read(link), continuing: read(file + ".1"))
        #expect(recording.isComplete && recording.records.map(\.duration) == [1, 2])
        #expect(!FileManager.default.fileExists(atPath: link + ".1"))
    }
}
